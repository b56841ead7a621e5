import { useEffect, useLayoutEffect, useRef, useState } from "react";

import type { InboxItem } from "../../api/types.ts";
import { pageOffsets, type ReadingPosition, rowsMoved } from "../../pure/inbox_order.ts";
import type { RowWindow } from "../../pure/row_window.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { InboxRow } from "./InboxRow.tsx";
import { type Inbox, PAGE } from "./useInbox.ts";
import { useRowWindow } from "./useRowWindow.ts";

export interface InboxListProps {
  inbox: Inbox;
  selected: { item: InboxItem; place: number } | undefined;
  onOffsets: (offsets: readonly number[]) => void;
}

/** The height of a row in rem, as in the style sheet. */
const ROW_REM = 5.5;
/** How long a page has to be in view before it is asked for. */
const PASSING_MS = 60;

/** All items, of which only the visible ones are drawn. What is read stays in place when others come and go. */
export function InboxList({ inbox, selected, onOffsets }: InboxListProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const [row] = useState(
    () => ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize),
  );
  const place = selected?.place;
  const { drawn, place: at, reveal } = useRowWindow(scroll, row, inbox.total);
  const offsets = pageOffsets(drawn.first, Math.max(drawn.first, drawn.end - 1), PAGE).join();
  useEffect(() => {
    // Pages that are only passed are not asked for.
    const timer = setTimeout(() => onOffsets(offsets.split(",").map(Number)), PASSING_MS);
    return () => clearTimeout(timer);
  }, [offsets, onOffsets]);
  const above = useReadingPosition(scroll, at, inbox, selected, row);
  const id = selected?.item.interrupt.id;
  // Only another selection scrolls, not an item that moves.
  useEffect(() => {
    if (id !== undefined && place !== undefined) reveal(place);
  }, [id]);
  return (
    <div className="inbox-list">
      {above.count > 0 && (
        <Button className="inbox-above" onClick={above.show}>
          {text.newAbove(above.count)}
        </Button>
      )}
      <div className="inbox-scroll" ref={scroll} onScroll={above.onScroll}>
        <ul aria-label={text.list} style={{ height: inbox.total * row }}>
          {placesOf(drawn, place, inbox.total).map((at) => (
            <InboxRow
              key={inbox.places.get(at)?.interrupt.id ?? at}
              item={inbox.places.get(at)}
              place={at}
              total={inbox.total}
              start={at * row}
              isSelected={id !== undefined && inbox.places.get(at)?.interrupt.id === id}
            />
          ))}
        </ul>
      </div>
    </div>
  );
}

/** The rows to draw, in order. The selected one stays drawn, because it may have the focus. */
function placesOf({ first, end }: RowWindow, selected: number | undefined, total: number): number[] {
  const places = Array.from({ length: end - first }, (_, at) => first + at);
  if (selected === undefined || selected >= total) return places;
  if (selected < first) return [selected, ...places];
  return selected >= end ? [...places, selected] : places;
}

/** Keeps the row that is read where it is on screen, and counts what came above it. */
function useReadingPosition(
  scroll: React.RefObject<HTMLDivElement | null>,
  at: React.RefObject<{ top: number; height: number }>,
  { places }: Inbox,
  selected: InboxListProps["selected"],
  row: number,
) {
  const position = useRef<ReadingPosition>(undefined);
  const [count, setCount] = useState(0);
  const note = () => {
    const { top: scrolled, height } = at.current;
    const top = Math.ceil(scrolled / row);
    const isVisible = selected && selected.place >= top && selected.place * row < scrolled + height;
    const place = isVisible ? selected.place : top;
    const item = places.get(place);
    position.current = item && { id: item.interrupt.id, place };
  };
  useLayoutEffect(() => {
    const element = scroll.current;
    if (!element) return;
    const moved = rowsMoved(position.current, places);
    if (moved !== 0) {
      element.scrollTop += moved * row;
      at.current = { ...at.current, top: element.scrollTop };
      if (moved > 0 && at.current.top > 0) setCount((before) => before + moved);
    }
    note();
  }, [places, selected, row]);
  return {
    count,
    onScroll: () => {
      note();
      if (at.current.top < row / 2) setCount(0);
    },
    show: () => {
      scroll.current?.scrollTo({ top: 0 });
      setCount(0);
    },
  };
}
