/** The window of a list whose rows have the same height. A virtualizer that measures rows costs more code and more of each frame. */

import { type RefObject, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";

import { drawnRows, type ListPosition, type RowWindow, topShowing } from "../../pure/row_window.ts";

export interface ShownRows {
  drawn: RowWindow;
  /** Scrolls as little as needed to show a row as a whole. */
  reveal: (place: number) => void;
}

export function useRowWindow(scroll: RefObject<HTMLElement | null>, row: number, count: number): ShownRows {
  // Before the list is measured, it is at most as high as the window: its rows are in the first frame.
  const [{ top, height }, setPlace] = useState(() => ({ top: 0, height: window.innerHeight }));
  const size = useRef({ row, count });
  useLayoutEffect(() => {
    size.current = { row, count };
  });
  useLayoutEffect(() => {
    const element = scroll.current;
    if (!element) return;
    let shown: ListPosition | undefined;
    const look = (visibleHeight: number) => {
      const now = { top: element.scrollTop, height: visibleHeight, ...size.current };
      if (shown && isSameWindow(shown, now)) return;
      shown = now;
      setPlace({ top: now.top, height: now.height });
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
    reveal: (place) => {
      const element = scroll.current;
      if (!element) return;
      const at = { top: element.scrollTop, height: element.clientHeight, row, count };
      element.scrollTop = topShowing(place, at);
    },
  };
}

function isSameWindow(one: ListPosition, other: ListPosition): boolean {
  const [before, after] = [drawnRows(one), drawnRows(other)];
  return before.first === after.first && before.end === after.end;
}
