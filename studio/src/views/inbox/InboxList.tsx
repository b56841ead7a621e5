import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";

import type { InboxItem } from "../../api/types.ts";
import { pageOffsets, type ReadingPosition, rowsMoved } from "../../pure/inbox_order.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { InboxRow } from "./InboxRow.tsx";
import { type Inbox, PAGE } from "./useInbox.ts";

export interface InboxListProps {
  inbox: Inbox;
  selected: { item: InboxItem; place: number } | undefined;
  onOffsets: (offsets: readonly number[]) => void;
}

/** The height of a row in rem, as in the style sheet. */
const ROW_REM = 5.5;

/** All items, of which only the visible ones are drawn. What is read stays in place when others come and go. */
export function InboxList({ inbox, selected, onOffsets }: InboxListProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const [row] = useState(
    () => ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize),
  );
  const place = selected?.place;
  const virtualizer = useVirtualizer({
    count: inbox.total,
    getScrollElement: () => scroll.current,
    estimateSize: () => row,
    overscan: 6,
    // The selected row stays drawn, because it may have the focus.
    rangeExtractor: (range) => {
      const drawn = defaultRangeExtractor(range);
      return place === undefined || place >= inbox.total
        ? drawn
        : [...new Set([...drawn, place])].sort((a, b) => a - b);
    },
  });
  const rows = virtualizer.getVirtualItems();
  const visible = virtualizer.range;
  const offsets = pageOffsets(visible?.startIndex ?? 0, visible?.endIndex ?? 0, PAGE).join();
  useEffect(() => onOffsets(offsets.split(",").map(Number)), [offsets, onOffsets]);
  const above = useReadingPosition(scroll, inbox, selected, row);
  const id = selected?.item.interrupt.id;
  // Only another selection scrolls, not an item that moves.
  useEffect(() => {
    if (id !== undefined && place !== undefined) virtualizer.scrollToIndex(place, { align: "auto" });
  }, [id]);
  return (
    <div className="inbox-list">
      {above.count > 0 && (
        <Button className="inbox-above" onClick={above.show}>
          {text.newAbove(above.count)}
        </Button>
      )}
      <div className="inbox-scroll" ref={scroll} onScroll={above.onScroll}>
        <ul aria-label={text.list} style={{ height: virtualizer.getTotalSize() }}>
          {rows.map(({ index, start }) => (
            <InboxRow
              key={inbox.places.get(index)?.interrupt.id ?? index}
              item={inbox.places.get(index)}
              place={index}
              total={inbox.total}
              start={start}
              isSelected={id !== undefined && inbox.places.get(index)?.interrupt.id === id}
            />
          ))}
        </ul>
      </div>
    </div>
  );
}

/** Keeps the row that is read where it is on screen, and counts what came above it. */
function useReadingPosition(
  scroll: React.RefObject<HTMLDivElement | null>,
  { places }: Inbox,
  selected: InboxListProps["selected"],
  row: number,
) {
  const position = useRef<ReadingPosition>(undefined);
  const [count, setCount] = useState(0);
  const note = (element: HTMLElement) => {
    const top = Math.ceil(element.scrollTop / row);
    const isVisible =
      selected && selected.place >= top && selected.place * row < element.scrollTop + element.clientHeight;
    const place = isVisible ? selected.place : top;
    const item = places.get(place);
    position.current = item && { id: item.interrupt.id, place };
  };
  // Not with every row that is scrolled into view: to ask where the list is makes the browser lay it out.
  useLayoutEffect(() => {
    const element = scroll.current;
    if (!element) return;
    const moved = rowsMoved(position.current, places);
    if (moved !== 0) {
      element.scrollTop += moved * row;
      if (moved > 0 && element.scrollTop > 0) setCount((before) => before + moved);
    }
    note(element);
  }, [places, selected, row]);
  return {
    count,
    onScroll: () => {
      const element = scroll.current;
      if (!element) return;
      note(element);
      if (element.scrollTop < row / 2) setCount(0);
    },
    show: () => {
      scroll.current?.scrollTo({ top: 0 });
      setCount(0);
    },
  };
}
