import { type RefObject, useEffect } from "react";

/** Scrolls what is current in a line of links or tabs into view, which is longer than the screen of a phone. */
export function useRevealed(
  line: RefObject<HTMLElement | null>,
  selector: string,
  current: string | undefined,
): void {
  useEffect(() => {
    const reveal = () => {
      const found = current === undefined ? undefined : line.current?.querySelector(selector);
      if (!found || !line.current) return;
      // Only along the line: the page itself stays where it is.
      const [inner, outer] = [found.getBoundingClientRect(), line.current.getBoundingClientRect()];
      line.current.scrollBy({ left: inner.left + inner.width / 2 - (outer.left + outer.width / 2) });
    };
    reveal();
    window.addEventListener("resize", reveal);
    return () => window.removeEventListener("resize", reveal);
  }, [line, selector, current]);
}
