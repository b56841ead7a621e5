import { useCallback, useSyncExternalStore } from "react";

/** To make a list takes longer than to read it, and views are drawn often. */
const lists = new Map<string, MediaQueryList>();

function listOf(query: string): MediaQueryList {
  const list = lists.get(query) ?? matchMedia(query);
  lists.set(query, list);
  return list;
}

/** Returns whether a media query matches, and follows it. */
export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = listOf(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => listOf(query).matches);
}

/** Whether there is room for the graph next to the other panes. */
export const WIDE = "(min-width: 75rem)";
export const REDUCED_MOTION = "(prefers-reduced-motion: reduce)";
