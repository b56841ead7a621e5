// biome-ignore-all lint/a11y/useSemanticElements: a table cannot leave out rows that are not in view.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the active row.
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";

import { formatDuration } from "../../../pure/format.ts";
import type { Axis, Highlights, WaterfallRow } from "../../../pure/waterfall.ts";
import { trace as text } from "../../../text/trace.ts";
import { TraceRow } from "./TraceRow.tsx";

interface GridProps {
  rows: readonly WaterfallRow[];
  axis: Axis;
  now: number;
  highlights: Highlights;
  selected: string | undefined;
  onSelect: (span: string) => void;
  onToggle: (span: string, isOpen: boolean) => void;
}

const ROW_PX = 34;
const NARROW_ROW_PX = 44;

/** The rows of the trace. The grid has the focus and names the active row, so the focus stays when rows come and go. */
export function TraceGrid(props: GridProps) {
  const { rows, axis, now, highlights, selected, onSelect } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const [active, setActive] = useActive(rows);
  const isNarrow = useIsNarrow(scroller);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (isNarrow ? NARROW_ROW_PX : ROW_PX),
    overscan: 10,
    // The header is above the rows.
    scrollPaddingStart: ROW_PX,
    rangeExtractor: (range) =>
      [...new Set([...defaultRangeExtractor(range), active])]
        .filter((at) => at < rows.length)
        .sort((a, b) => a - b),
  });
  useEffect(() => {
    void isNarrow;
    list.measure();
  }, [isNarrow, list]);
  const goTo = (index: number) => {
    const at = Math.min(rows.length - 1, Math.max(0, index));
    setActive(at);
    list.scrollToIndex(at);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_PX) - 2);
    if (move(event.key, { ...props, active, page, goTo })) event.preventDefault();
  };
  const rowId = (index: number) => `${id}-${rows[index]?.span.span_id ?? index}`;
  return (
    <div
      ref={scroller}
      className="trace-grid"
      data-narrow={isNarrow || undefined}
      role="treegrid"
      tabIndex={0}
      aria-label={text.title}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={rowId(active)}
      onKeyDown={onKeyDown}
    >
      <Header axis={axis} />
      <div role="rowgroup" className="trace-rows" style={{ blockSize: list.getTotalSize() }}>
        {list.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          if (!row) return null;
          const { span_id } = row.span;
          return (
            <TraceRow
              key={span_id}
              {...{ row, axis, now, index, start }}
              id={rowId(index)}
              isActive={index === active}
              isSelected={span_id === selected}
              isSlow={highlights.slow.has(span_id)}
              isExpensive={highlights.expensive.has(span_id)}
              onToggle={props.onToggle}
              onSelect={(span) => {
                setActive(index);
                onSelect(span);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

interface Moves extends GridProps {
  active: number;
  page: number;
  goTo: (index: number) => void;
}

/** The keys of a tree grid. Returns whether the key is one of them. */
function move(key: string, { rows, active, page, goTo, onSelect, onToggle }: Moves): boolean {
  const row = rows[active];
  if (!row) return false;
  const { span, isExpandable, isExpanded, parent } = row;
  const moves: Record<string, () => void> = {
    ArrowDown: () => goTo(active + 1),
    ArrowUp: () => goTo(active - 1),
    PageDown: () => goTo(active + page),
    PageUp: () => goTo(active - page),
    Home: () => goTo(0),
    End: () => goTo(rows.length - 1),
    ArrowRight: () =>
      isExpandable && !isExpanded ? onToggle(span.span_id, true) : isExpanded && goTo(active + 1),
    ArrowLeft: () => (isExpanded ? onToggle(span.span_id, false) : parent !== undefined && goTo(parent)),
    Enter: () => onSelect(span.span_id),
    " ": () => onSelect(span.span_id),
  };
  const found = moves[key];
  found?.();
  return found !== undefined;
}

/** Keeps the active row by its span: rows above it may open and close. */
function useActive(rows: readonly WaterfallRow[]): [number, (index: number) => void] {
  const [active, setActive] = useState<{ span: string | undefined; index: number }>({
    span: undefined,
    index: 0,
  });
  const isThere = rows[active.index]?.span.span_id === active.span;
  const found = isThere ? active.index : rows.findIndex(({ span }) => span.span_id === active.span);
  const index = found >= 0 ? found : Math.min(active.index, Math.max(0, rows.length - 1));
  return [index, (at) => setActive({ span: rows[at]?.span.span_id, index: at })];
}

const NARROW_PX = 620;

function useIsNarrow(element: { current: HTMLElement | null }): boolean {
  const [isNarrow, setIsNarrow] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) =>
      setIsNarrow((entry?.contentRect.width ?? NARROW_PX) < NARROW_PX),
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return isNarrow;
}

function Header({ axis }: { axis: Axis }) {
  const { columns } = text;
  return (
    <div role="row" className="trace-row trace-header" aria-rowindex={1} tabIndex={-1}>
      <span role="columnheader" className="trace-name">
        {columns.name}
      </span>
      <span role="columnheader" className="trace-time">
        <span className="visually-hidden">{columns.time}</span>
        <span className="trace-axis" aria-hidden="true">
          {axis.parts
            .filter(({ isCompressed }) => isCompressed)
            .map(({ from, to, start, end }) => (
              <span
                key={from}
                className="trace-gap-name"
                title={text.compressed(formatDuration(to - from))}
                style={{ insetInlineStart: `${((start + end) / 2) * 100}%` }}
              >
                ≀ {formatDuration(to - from)}
              </span>
            ))}
        </span>
      </span>
      <span role="columnheader" className="trace-number">
        {columns.duration}
      </span>
      <span role="columnheader" className="trace-number">
        {columns.tokens}
      </span>
      <span role="columnheader" className="trace-number">
        {columns.cost}
      </span>
    </div>
  );
}
