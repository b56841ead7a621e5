import type { ReactNode } from "react";

import type { TraceSpan } from "../../../api/types.ts";
import { formatDuration } from "../../../pure/format.ts";
import { visibleText } from "../../../pure/markdown.ts";
import { isWait, nameOf, otherAttributes, tokensOf } from "../../../pure/waterfall.ts";
import { trace as text } from "../../../text/trace.ts";
import { LongText, OpenedProvider } from "../messages/Fold.tsx";
import { costText } from "./TraceRow.tsx";

/** Everything that is known about a span. */
export function TraceDetails({ span }: { span: TraceSpan | undefined }) {
  return (
    <section className="trace-details card" aria-label={text.details} aria-live="polite">
      {span ? <Details span={span} /> : <p className="muted">{text.selectOne}</p>}
    </section>
  );
}

function Details({ span }: { span: TraceSpan }) {
  const tokens = tokensOf(span);
  const { waits } = text;
  const name = isWait(span) ? waits[span.kind as keyof typeof waits] : visibleText(nameOf(span));
  const time = (at: string) =>
    new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  return (
    <OpenedProvider key={span.span_id}>
      <h3>
        <bdi>{name}</bdi>
      </h3>
      <dl className="trace-facts">
        <Fact name={text.kind}>{text.kinds[span.kind] ?? span.kind}</Fact>
        <Fact name={text.started}>{time(span.started_at)}</Fact>
        <Fact name={text.ended}>{span.ended_at === null ? text.open.other : time(span.ended_at)}</Fact>
        <Fact name={text.duration}>{span.duration_ms !== null && formatDuration(span.duration_ms)}</Fact>
        <Fact name={text.outcome}>{span.outcome}</Fact>
        <Fact name={text.model}>{span.model}</Fact>
        <Fact name={text.tool}>{span.tool}</Fact>
        <Fact name={text.toolClass}>{span.tool_class}</Fact>
        <Fact name={text.tokensName}>{tokens && text.tokens(tokens.input, tokens.output)}</Fact>
        <Fact name={text.costName}>{costText(span)}</Fact>
        <Fact name={text.node}>{span.node}</Fact>
        <Fact name={text.step}>{span.step}</Fact>
        <Fact name={text.subgraph}>{typeof span.subgraph === "string" ? span.subgraph : undefined}</Fact>
        <Fact name={text.attempts}>{span.attempt}</Fact>
        <Fact name={text.run}>{span.run_id}</Fact>
        {otherAttributes(span).map(({ name, value }) => (
          <Fact key={name} name={visibleText(name)}>
            {value}
          </Fact>
        ))}
      </dl>
      {span.error !== null && (
        <div className="trace-error">
          <p className="small muted">{text.failed}</p>
          <LongText id="error" value={span.error} />
        </div>
      )}
      {span.cost.calls_of_unknown_cost > 0 && <p className="small muted">{text.notCounted}</p>}
    </OpenedProvider>
  );
}

/** A fact; nothing if it is not known. */
function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === undefined || children === null || children === false || children === "") return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <bdi>{typeof children === "string" ? visibleText(children) : children}</bdi>
      </dd>
    </div>
  );
}
