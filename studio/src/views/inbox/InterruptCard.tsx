import { memo, useEffect, useRef } from "react";
import type { InboxItem } from "../../api/types.ts";
import { ErrorBoundary } from "../../app/ErrorBoundary.tsx";
import { useMay } from "../../app/me.ts";
import { subjectOf } from "../../pure/inbox_order.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { inbox as text } from "../../text/inbox.ts";
import { AgentQuestion } from "../agents/AgentQuestion.tsx";
import { AnswerPart } from "./AnswerPart.tsx";
import { AnswerStatus } from "./AnswerStatus.tsx";
import { agentName } from "./agent_name.ts";
import { formOf } from "./answering.ts";
import { Facts, Reasons } from "./Facts.tsx";
import { type OutgoingAnswers, useOutgoing } from "./outbox.ts";

export interface InterruptCardProps {
  group: readonly InboxItem[];
  item: InboxItem;
  /** Whether the keys are for this card, if there are several. */
  isCurrent: boolean;
  /** Why it cannot be answered any more. */
  closed?: React.ReactNode;
}

/** One question with everything that a person needs to answer it. */
export const InterruptCard = memo(function InterruptCard(props: InterruptCardProps) {
  const { group, item, isCurrent, closed } = props;
  const outgoing = useOutgoing(item);
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isCurrent && group.length > 1) card.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent, group.length]);
  return (
    <article
      ref={card}
      id={`card-${item.interrupt.id}`}
      tabIndex={-1}
      className="card stack inbox-card"
      data-single={group.length === 1}
      data-current={isCurrent && group.length > 1}
      aria-labelledby={`subject-${item.interrupt.id}`}
    >
      <header className="stack inbox-head">
        <p className="muted small">
          <bdi>{agentName(item.graph_id)}</bdi> {text.kinds[item.kind] ?? text.asks}
        </p>
        <h2 id={`subject-${item.interrupt.id}`}>
          <bdi>{visibleText(subjectOf(item))}</bdi>
        </h2>
      </header>
      {/* A question in an unexpected form must not take the others with it. */}
      <ErrorBoundary>
        <AgentQuestion item={item} />
      </ErrorBoundary>
      <Reasons item={item} />
      <Facts item={item} />
      {closed ?? <Answer group={group} item={item} outgoing={outgoing} />}
    </article>
  );
});

interface AnswerProps {
  group: readonly InboxItem[];
  item: InboxItem;
  outgoing: OutgoingAnswers | undefined;
}

function Answer({ group, item, outgoing }: AnswerProps) {
  const may = useMay();
  const { parts } = formOf(item);
  if (outgoing) {
    const way = outgoing.given.find((given) => given.item.interrupt.id === item.interrupt.id)?.way ?? "";
    return <AnswerStatus key={outgoing.batch} outgoing={outgoing} way={way} />;
  }
  if (!may("answer")) return <p className="muted">{text.mayNot}</p>;
  return (
    <div className="stack inbox-answer">
      {parts.map((part, at) => (
        <section key={at} className="stack">
          {parts.length > 1 && (
            <h3>
              <bdi>{visibleText(text.part(at + 1, parts.length, part.action))}</bdi>
            </h3>
          )}
          <AnswerPart group={group} item={item} at={at} part={part} isDisabled={false} />
        </section>
      ))}
    </div>
  );
}
