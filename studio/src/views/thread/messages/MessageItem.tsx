import { memo, type ReactNode } from "react";

import { type LiveBlock, type LiveMessage, type LiveTool, liveText } from "../../../pure/event_fold.ts";
import { formatDuration, formatMoney } from "../../../pure/format.ts";
import { visibleText } from "../../../pure/markdown.ts";
import type { Entry, ModelFacts, Role, ThreadMessage } from "../../../pure/messages.ts";
import { messages as text } from "../../../text/messages.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Fold, LongText, RawJson } from "./Fold.tsx";
import type { Facts } from "./facts.ts";
import { ToolCallCard } from "./ToolCallCard.tsx";

interface ItemProps {
  entry: Entry;
  facts: Facts;
  tools: ReadonlyMap<string, LiveTool>;
  isNewest: boolean;
}

/** One message. Rows that did not change are not drawn again while another one grows. */
export const MessageItem = memo(function MessageItem({ entry, facts, tools, isNewest }: ItemProps) {
  if (entry.kind === "live") return <LiveItem message={entry.message} />;
  return <StoredItem message={entry.message} results={entry.results} {...{ facts, tools, isNewest }} />;
});

function Frame(props: {
  by: Role;
  name?: string | undefined;
  isReplaced?: boolean;
  meta?: ReactNode;
  children: ReactNode;
}) {
  const { by, name, isReplaced, meta, children } = props;
  return (
    <article className="message" data-role={by} data-replaced={isReplaced || undefined}>
      <header className="row message-head">
        <span className="message-sign" aria-hidden="true">
          {text.signs[by]}
        </span>
        <strong>{text.roles[by]}</strong>
        {name && <bdi className="muted mono">{visibleText(name)}</bdi>}
        {meta}
      </header>
      {children}
    </article>
  );
}

type StoredProps = Omit<ItemProps, "entry"> & {
  message: ThreadMessage;
  results: ReadonlyMap<string, ThreadMessage>;
};

function StoredItem({ message, results, facts, tools, isNewest }: StoredProps) {
  const model = facts.models.get(message.key);
  const labels = facts.labels.get(message.pointer) ?? [];
  const { key, role } = message;
  const meta = (
    <>
      {model && <ModelMeta facts={model} />}
      {labels.map((label) => (
        <Badge key={label} tone="label" title={text.labels}>
          {visibleText(label)}
        </Badge>
      ))}
    </>
  );
  return (
    <Frame by={role} name={message.name} meta={meta}>
      {message.reasoning && (
        <Fold id={`reasoning/${key}`} summary={text.reasoning}>
          {() => <LongText id={`reasoning-text/${key}`} value={message.reasoning} isMarkdown />}
        </Fold>
      )}
      {message.text !== "" && (
        <LongText id={`text/${key}`} value={message.text} isMarkdown={role !== "tool"} />
      )}
      {message.text === "" && message.calls.length === 0 && <p className="muted">{text.noText}</p>}
      {message.others.length > 0 && <p className="muted">{visibleText(text.others(message.others))}</p>}
      {message.calls.map((call) => (
        <ToolCallCard
          key={call.id}
          call={call}
          result={results.get(call.id)}
          facts={facts.calls.get(call.id)}
          approval={facts.approvals.get(call.id)}
          live={tools.get(call.id)}
          isNewest={isNewest}
        />
      ))}
      <div className="row">
        <RawJson id={`raw/${key}`} summary={text.raw} value={message.raw} />
        {model && <RawJson id={`span/${key}`} summary={text.rawCall} value={model.span} />}
      </div>
    </Frame>
  );
}

function ModelMeta({ facts }: { facts: ModelFacts }) {
  const { span, node } = facts;
  const cost = span.nano_dollars === undefined ? text.costUnknown : formatMoney(span.nano_dollars);
  const parts = [
    text.tokens(span.input_tokens, span.output_tokens),
    cost,
    ...(span.duration_ms === null ? [] : [formatDuration(span.duration_ms)]),
  ];
  return (
    <span className="muted small message-meta">
      {node && <bdi>{visibleText(node)}</bdi>}
      {span.model && <bdi className="mono message-model">{visibleText(span.model)}</bdi>}
      <span>{parts.join(" · ")}</span>
    </span>
  );
}

function LiveItem({ message }: { message: LiveMessage }) {
  const { status, usage } = message;
  const isReplaced = status === "replaced";
  const tone = status === "writing" ? "accent" : status === "stopped" ? "warn" : "plain";
  const meta = (
    <>
      <Badge tone={tone}>{text.status[status]}</Badge>
      {usage && <span className="muted small">{text.tokens(usage.input, usage.output)}</span>}
    </>
  );
  const reasoning = liveText(message, "reasoning");
  return (
    <Frame by="ai" name={message.node} isReplaced={isReplaced} meta={meta}>
      {reasoning && (
        <Fold id={`reasoning/${message.key}`} summary={text.reasoning}>
          {() => <LongText id={`reasoning-text/${message.key}`} value={reasoning} isMarkdown />}
        </Fold>
      )}
      <LiveBody message={message} />
      {message.blocks
        .filter(({ kind }) => kind === "call")
        .map((block) => (
          <LiveCall key={block.index} block={block} />
        ))}
    </Frame>
  );
}

function LiveBody({ message }: { message: LiveMessage }) {
  const value = liveText(message);
  const body = (
    <LongText id={`live/${message.key}`} value={value} isMarkdown isGrowing={message.status === "writing"} />
  );
  return message.status === "replaced" ? <del className="replaced">{body}</del> : body;
}

function LiveCall({ block }: { block: LiveBlock }) {
  return (
    <section className="call" aria-label={text.call.title(visibleText(block.callName))}>
      <header className="row">
        <span aria-hidden="true">{text.signs.tool}</span>
        <strong className="mono">
          <bdi>{visibleText(block.callName)}</bdi>
        </strong>
      </header>
      <p className="small muted">{block.isComplete ? text.call.args : text.call.argsIncomplete}</p>
      <LongText id={`live-args/${block.callId}`} value={block.text} />
    </section>
  );
}
