// biome-ignore-all lint/a11y/useSemanticElements: a table cannot leave out rows that are not in view.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the active row.
import { memo } from "react";

import type { TraceSpan } from "../../../api/types.ts";
import { formatCost, formatDuration, formatMoney } from "../../../pure/format.ts";
import { visibleText } from "../../../pure/markdown.ts";
import {
  type Axis,
  endOf,
  isWait,
  nameOf,
  placeOf,
  startOf,
  tokensOf,
  type WaterfallRow,
} from "../../../pure/waterfall.ts";
import { trace as text } from "../../../text/trace.ts";
import { Badge } from "../../../ui/Badge.tsx";

interface RowProps {
  row: WaterfallRow;
  axis: Axis;
  now: number;
  index: number;
  start: number;
  id: string;
  isActive: boolean;
  isSelected: boolean;
  isSlow: boolean;
  isExpensive: boolean;
  onSelect: (span: string) => void;
  onToggle: (span: string, isOpen: boolean) => void;
}

/** One span. Its keys are handled by the grid, which has the focus. */
export const TraceRow = memo(
  function TraceRow(props: RowProps) {
    const { row, index, start, id, isActive, isSelected, onSelect } = props;
    const { span, level, place, siblings, isExpandable, isExpanded } = row;
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys of its active row.
      <div
        role="row"
        id={id}
        className="trace-row"
        tabIndex={-1}
        aria-level={level}
        aria-posinset={place}
        aria-setsize={siblings}
        aria-rowindex={index + 2}
        aria-expanded={isExpandable ? isExpanded : undefined}
        aria-selected={isSelected}
        data-active={isActive || undefined}
        data-kind={span.kind}
        style={{ transform: `translateY(${start}px)` }}
        onClick={() => onSelect(span.span_id)}
      >
        <Name {...props} />
        <Bar {...props} />
        <Numbers span={span} />
      </div>
    );
  },
  // Where it is called from does not matter: the functions do the same.
  (before, after) =>
    before.row.span === after.row.span &&
    before.row.isExpanded === after.row.isExpanded &&
    before.row.isExpandable === after.row.isExpandable &&
    before.row.level === after.row.level &&
    before.row.siblings === after.row.siblings &&
    before.axis === after.axis &&
    before.index === after.index &&
    before.start === after.start &&
    before.isActive === after.isActive &&
    before.isSelected === after.isSelected &&
    before.isSlow === after.isSlow &&
    before.isExpensive === after.isExpensive &&
    before.onToggle === after.onToggle,
);

function Name({ row, isSlow, isExpensive, onToggle }: RowProps) {
  const { span, level, isExpandable, isExpanded } = row;
  return (
    <span
      role="gridcell"
      className="trace-name"
      style={{ paddingInlineStart: `${(Math.min(level, 12) - 1) * 14 + 4}px` }}
    >
      {/* The arrow keys of the grid do the same. */}
      <span
        className="trace-toggle"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          if (isExpandable) onToggle(span.span_id, !isExpanded);
        }}
      >
        {isExpandable && (isExpanded ? "▾" : "▸")}
      </span>
      {!nameOf(span).startsWith(span.kind) && (
        <span className="trace-kind small">{visibleText(text.kinds[span.kind] ?? span.kind)}</span>
      )}
      <bdi className="trace-label" title={visibleText(nameOf(span))}>
        {isWait(span) ? text.waits[span.kind as keyof typeof text.waits] : visibleText(nameOf(span))}
      </bdi>
      {span.error !== null && <Badge tone="bad">{text.error}</Badge>}
      {span.attempt !== undefined && <Badge tone="warn">{text.attempt(span.attempt)}</Badge>}
      {span.is_cached && <Badge>{text.cached}</Badge>}
      {span.tool_class && (
        <Badge tone={span.tool_class === "unsafe" ? "warn" : "plain"}>{visibleText(span.tool_class)}</Badge>
      )}
      {isSlow && (
        <Badge tone="warn" title={text.slowWhy}>
          {text.slow}
        </Badge>
      )}
      {isExpensive && (
        <Badge tone="warn" title={text.expensiveWhy}>
          {text.expensive}
        </Badge>
      )}
    </span>
  );
}

function Bar({ row, axis, now, isSlow, isExpensive }: RowProps) {
  const { span } = row;
  const from = placeOf(axis, startOf(span));
  const to = placeOf(axis, endOf(span, now));
  const percent = (share: number) => `${(share * 100).toFixed(3)}%`;
  return (
    <span role="gridcell" className="trace-time" aria-hidden="true">
      {axis.parts
        .filter(({ isCompressed }) => isCompressed)
        .map((part) => (
          <span
            key={part.from}
            className="trace-gap"
            style={{ insetInlineStart: percent(part.start), inlineSize: percent(part.end - part.start) }}
          />
        ))}
      <span
        className="trace-line"
        data-kind={span.kind}
        data-open={span.ended_at === null || undefined}
        data-error={span.error !== null || undefined}
        data-hot={isSlow || isExpensive || undefined}
        style={{ insetInlineStart: percent(from), inlineSize: percent(to - from) }}
      />
    </span>
  );
}

function Numbers({ span }: { span: TraceSpan }) {
  const tokens = tokensOf(span);
  const open = span.kind === "wait" ? text.open.wait : text.open.other;
  return (
    <>
      <span role="gridcell" className="trace-number">
        {span.duration_ms === null ? open : formatDuration(span.duration_ms)}
      </span>
      <span role="gridcell" className="trace-number">
        {tokens && text.tokens(tokens.input, tokens.output)}
      </span>
      <span role="gridcell" className="trace-number">
        {costText(span)}
      </span>
    </>
  );
}

/** What a span cost; nothing if it called no model. */
export function costText(span: TraceSpan): string {
  if (span.kind !== "model") return span.cost.model_calls === 0 ? "" : formatCost(span.cost);
  if (span.nano_dollars !== undefined) return formatMoney(span.nano_dollars);
  return span.ended_at === null ? "" : text.costUnknown;
}
