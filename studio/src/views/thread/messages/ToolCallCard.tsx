import type { ReactNode } from "react";

import { isObject, type Json } from "../../../api/json.ts";
import type { LiveTool } from "../../../pure/event_fold.ts";
import { formatCost, formatDuration } from "../../../pure/format.ts";
import { visibleText } from "../../../pure/markdown.ts";
import type { Approval, CallFacts, ThreadMessage, ToolCall } from "../../../pure/messages.ts";
import { messages as text } from "../../../text/messages.ts";
import { Badge, type Tone } from "../../../ui/Badge.tsx";
import { Time } from "../../../ui/Time.tsx";
import { LongText, RawJson } from "./Fold.tsx";

interface CardProps {
  call: ToolCall;
  result: ThreadMessage | undefined;
  facts: CallFacts | undefined;
  approval: Approval | undefined;
  live: LiveTool | undefined;
  /** Whether the newest state is shown, so a call without a result may be running. */
  isNewest: boolean;
}

type Outcome = keyof typeof text.call.outcomes;

function outcomeOf({ result, facts, approval, live, isNewest }: CardProps): Outcome {
  if (result) return result.isError || facts?.error ? "error" : "success";
  if (isNewest && live) return live.status;
  if (facts) return facts.error ? "error" : "success";
  return approval?.status === "open" ? "waiting" : "none";
}

const TONES: Record<Outcome, Tone> = {
  success: "good",
  error: "bad",
  running: "accent",
  waiting: "warn",
  none: "plain",
};

/** A call of a tool: what was called with what, who allowed it, and what came of it. */
export function ToolCallCard(props: CardProps) {
  const { call, result, facts, live } = props;
  const outcome = outcomeOf(props);
  const output = result?.text ?? live?.output ?? "";
  const isError = outcome === "error";
  return (
    <section className="call" aria-label={text.call.title(visibleText(call.name))}>
      <header className="row">
        <span aria-hidden="true">{text.signs.tool}</span>
        <strong className="mono">
          <bdi>{visibleText(call.name)}</bdi>
        </strong>
        <ClassBadge toolClass={facts?.toolClass} />
        <Badge tone={TONES[outcome]}>{text.call.outcomes[outcome]}</Badge>
      </header>
      <Arguments id={`args/${call.id}`} args={call.args} />
      <Details {...props} />
      {live?.status === "running" && live.progress && <p className="muted">{visibleText(live.progress)}</p>}
      {(output || facts?.error) && (
        <div className="call-result" data-error={isError || undefined}>
          <p className="small muted">{text.call.result}</p>
          <LongText id={`result/${call.id}`} value={output || (facts?.error ?? "")} />
        </div>
      )}
      <div className="row">
        <RawJson id={`request/${call.id}`} summary={text.rawRequest} value={call} />
        {result && <RawJson id={`response/${call.id}`} summary={text.rawResponse} value={result.raw} />}
      </div>
    </section>
  );
}

function ClassBadge({ toolClass }: { toolClass: string | undefined }) {
  if (toolClass === undefined || toolClass === "unknown") return <Badge>{text.call.classUnknown}</Badge>;
  const tone = toolClass === "unsafe" ? "warn" : "plain";
  return (
    <Badge tone={tone} title={text.call.classes[toolClass] ?? ""}>
      {visibleText(toolClass)}
    </Badge>
  );
}

function Details({ call, facts, approval }: CardProps) {
  return (
    <dl className="facts">
      <Fact name={text.call.approval}>
        {approval ? <ApprovalText approval={approval} /> : text.call.approvalNone}
      </Fact>
      {facts && facts.attempts > 1 && <Fact name={text.call.attempts}>{facts.attempts}</Fact>}
      {facts?.durationMs !== undefined && (
        <Fact name={text.call.duration}>{formatDuration(facts.durationMs)}</Fact>
      )}
      {facts?.cost && <Fact name={text.call.cost}>{formatCost(facts.cost)}</Fact>}
      {facts?.key && (
        <Fact name={text.call.key}>
          <bdi className="mono">{visibleText(facts.key)}</bdi>
        </Fact>
      )}
      <Fact name={text.call.id}>
        <bdi className="mono">{visibleText(call.id)}</bdi>
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function ApprovalText({ approval }: { approval: Approval }) {
  if (approval.status === "open") return text.call.approvalOpen;
  if (approval.status === "closed") return text.call.approvalClosed;
  const by = approval.by === undefined ? undefined : visibleText(approval.by);
  const decision = approval.decision === undefined ? undefined : visibleText(approval.decision);
  return (
    <>
      <bdi>{text.call.approved(decision, by)}</bdi> {approval.at && <Time at={approval.at} />}
    </>
  );
}

/** How many arguments are listed one by one. */
const LISTED_MAX = 30;

/** Arguments one by one, or as JSON if they are not a short list of names. */
export function Arguments({ id, args }: { id: string; args: Json }) {
  const entries = isObject(args) ? Object.entries(args) : [];
  if (isObject(args) && entries.length === 0)
    return <p className="small muted">{`${text.call.args}: ${text.call.noArgs}`}</p>;
  if (entries.length === 0 || entries.length > LISTED_MAX) {
    return <LongText id={id} value={typeof args === "string" ? args : JSON.stringify(args, null, 2)} />;
  }
  return (
    <dl className="arguments" aria-label={text.call.args}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <bdi className="mono">{visibleText(name)}</bdi>
          </dt>
          <dd>
            <LongText
              id={`${id}/${name}`}
              value={typeof value === "string" ? value : JSON.stringify(value, null, 2)}
            />
          </dd>
        </div>
      ))}
    </dl>
  );
}
