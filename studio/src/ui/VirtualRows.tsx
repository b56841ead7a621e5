import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

import "./VirtualRows.css";

/** Lists up to this length are drawn as they are. */
const PLAIN_MAX = 100;

export interface VirtualRowsProps {
  count: number;
  /** The height of a row before it is measured, in pixels. */
  estimate: number;
  /** What scrolls. */
  scroll: RefObject<HTMLElement | null>;
  row: (index: number) => ReactNode;
  keyOf: (index: number) => string;
  /** Stays drawn and is scrolled into view when it changes. */
  active?: number | undefined;
  /** The role of the elements around rows. */
  role?: "listitem" | "presentation";
}

/** Rows of a long list, of which only the visible ones are drawn. */
export function VirtualRows(props: VirtualRowsProps) {
  return props.count <= PLAIN_MAX ? <PlainRows {...props} /> : <DrawnRows {...props} />;
}

function PlainRows({ count, row, keyOf, active, role }: VirtualRowsProps) {
  const rows = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (active !== undefined) rows.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    <div ref={rows} role="presentation">
      {Array.from({ length: count }, (_, index) => (
        <div key={keyOf(index)} role={role}>
          {row(index)}
        </div>
      ))}
    </div>
  );
}

function DrawnRows({ count, estimate, scroll, row, keyOf, active, role }: VirtualRowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const margin = useOffset(box, scroll);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroll.current,
    estimateSize: () => estimate,
    getItemKey: keyOf,
    overscan: 8,
    scrollMargin: margin,
    // The row that has the focus of the keyboard must exist, or screen readers lose it.
    rangeExtractor: (range) => {
      const drawn = defaultRangeExtractor(range);
      if (active === undefined || active >= count || drawn.includes(active)) return drawn;
      return [...drawn, active].sort((a, b) => a - b);
    },
  });
  useEffect(() => {
    if (active !== undefined) rows.scrollToIndex(active, { align: "auto" });
  }, [active, rows]);
  return (
    <div ref={box} className="virtual-rows" role="presentation" style={{ blockSize: rows.getTotalSize() }}>
      {rows.getVirtualItems().map(({ index, key, start }) => (
        <div
          key={key}
          ref={rows.measureElement}
          data-index={index}
          role={role}
          {...(role === "listitem" && { "aria-setsize": count, "aria-posinset": index + 1 })}
          style={{ transform: `translateY(${start - margin}px)` }}
        >
          {row(index)}
        </div>
      ))}
    </div>
  );
}

/** Returns how far rows are below the beginning of what scrolls. */
function useOffset(box: RefObject<HTMLElement | null>, scroll: RefObject<HTMLElement | null>): number {
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    if (!box.current || !scroll.current) return;
    const top = box.current.getBoundingClientRect().top - scroll.current.getBoundingClientRect().top;
    const now = Math.round(top + scroll.current.scrollTop);
    if (Math.abs(now - offset) > 1) setOffset(now);
  });
  return offset;
}
