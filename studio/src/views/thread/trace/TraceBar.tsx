import { useId } from "react";

import type { TraceSpan } from "../../../api/types.ts";
import { formatCost } from "../../../pure/format.ts";
import { visitSpans } from "../../../pure/messages.ts";
import { type SpanFilter, sumOf, type WaterfallRow } from "../../../pure/waterfall.ts";
import { trace as text } from "../../../text/trace.ts";
import { Button } from "../../../ui/Button.tsx";

interface BarProps {
  roots: readonly TraceSpan[];
  rows: readonly WaterfallRow[];
  filter: SpanFilter;
  isCompressed: boolean;
  onFilter: (filter: SpanFilter) => void;
  onCompress: (isOn: boolean) => void;
  onCollapse: (collapsed: ReadonlySet<string>) => void;
}

/** What is shown of the trace, and its sums. */
export function TraceBar(props: BarProps) {
  const { roots, rows, filter, isCompressed, onFilter, onCompress, onCollapse } = props;
  const id = useId();
  const total = sumOf(roots);
  const collapseAll = () => {
    const all = new Set<string>();
    visitSpans(roots, (span) => {
      if (span.spans.length > 0) all.add(span.span_id);
    });
    onCollapse(all);
  };
  return (
    <div className="row trace-bar">
      <label className="row small" htmlFor={id}>
        {text.filter}
      </label>
      <select
        id={id}
        className="input trace-filter"
        value={filter}
        onChange={(event) => onFilter(event.target.value as SpanFilter)}
      >
        {(Object.keys(text.filters) as SpanFilter[]).map((name) => (
          <option key={name} value={name}>
            {text.filters[name]}
          </option>
        ))}
      </select>
      <label className="row small">
        <input
          type="checkbox"
          checked={isCompressed}
          onChange={(event) => onCompress(event.target.checked)}
        />
        {text.compress}
      </label>
      <Button kind="quiet" onClick={() => onCollapse(new Set())}>
        {text.expandAll}
      </Button>
      <Button kind="quiet" onClick={collapseAll}>
        {text.collapseAll}
      </Button>
      <span className="spacer" />
      <p className="small muted" role="status">
        {text.spans(rows.length)}
      </p>
      {total.model_calls > 0 && (
        <p className="small">
          {text.total}: {text.tokens(total.input_tokens, total.output_tokens)} · {formatCost(total)}
        </p>
      )}
    </div>
  );
}
