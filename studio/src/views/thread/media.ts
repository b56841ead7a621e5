import { useCallback, useSyncExternalStore } from "react";

/** Returns whether a media query matches, and follows it. */
export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}

/** Whether there is room for the graph next to the other panes. */
export const WIDE = "(min-width: 75rem)";
export const REDUCED_MOTION = "(prefers-reduced-motion: reduce)";
