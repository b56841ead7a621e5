/** The window of a list whose rows have the same height. A virtualizer that measures rows costs more code and more of each frame. */

import { type RefObject, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";

import { drawnRows, type ListPosition, type RowWindow, topShowing } from "../../pure/row_window.ts";

export interface ShownRows {
  drawn: RowWindow;
  /** Where the list is, as of its last scroll event: to ask the browser after rows changed makes it lay them out at once. */
  place: RefObject<{ top: number; height: number }>;
  /** Scrolls as little as needed to show a row as a whole. */
  reveal: (at: number) => void;
}

export function useRowWindow(scroll: RefObject<HTMLElement | null>, row: number, count: number): ShownRows {
  // Before the list is measured, it is at most as high as the window: its rows are in the first frame.
  const [{ top, height }, setPlace] = useState(() => ({ top: 0, height: window.innerHeight }));
  const place = useRef({ top, height });
  const size = useRef({ row, count });
  useLayoutEffect(() => {
    size.current = { row, count };
  });
  useLayoutEffect(() => {
    const element = scroll.current;
    if (!element) return;
    let shown: ListPosition | undefined;
    const look = (visibleHeight: number) => {
      place.current = { top: element.scrollTop, height: visibleHeight };
      const now = { ...place.current, ...size.current };
      if (shown && isSameWindow(shown, now)) return;
      shown = now;
      setPlace(place.current);
    };
    let known = element.clientHeight;
    look(known);
    const observer = new ResizeObserver(([entry]) => {
      known = entry?.contentRect.height ?? known;
      look(known);
    });
    observer.observe(element);
    // In the same frame, or the list would be empty for one.
    const follow = () => flushSync(() => look(known));
    element.addEventListener("scroll", follow, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", follow);
    };
  }, [scroll]);
  return {
    drawn: drawnRows({ top, height, row, count }),
    place,
    reveal: (at) => {
      const element = scroll.current;
      if (!element) return;
      const now = { top: element.scrollTop, height: element.clientHeight, row, count };
      const top = topShowing(at, now);
      if (top !== now.top) element.scrollTop = top;
    },
  };
}

function isSameWindow(one: ListPosition, other: ListPosition): boolean {
  const [before, after] = [drawnRows(one), drawnRows(other)];
  return before.first === after.first && before.end === after.end;
}
