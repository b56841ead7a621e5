import { type MouseEvent, memo } from "react";
import type { InboxItem } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, setQuery } from "../../app/location.ts";
import { subjectOf } from "../../pure/inbox_order.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Time } from "../../ui/Time.tsx";
import { agentName } from "./agent_name.ts";
import { hasDraft, useDraft } from "./drafts.ts";
import { useOutgoing } from "./outbox.ts";

export interface InboxRowProps {
  /** `undefined` while its page is loading. */
  item: InboxItem | undefined;
  place: number;
  total: number;
  start: number;
  isSelected: boolean;
}

export const InboxRow = memo(function InboxRow({ item, place, total, start, isSelected }: InboxRowProps) {
  return (
    <li
      className="inbox-row"
      aria-setsize={total}
      aria-posinset={place + 1}
      style={{ transform: `translateY(${start}px)` }}
    >
      {item ? (
        <RowLink item={item} isSelected={isSelected} />
      ) : (
        <span className="muted">{text.rowLoading}</span>
      )}
    </li>
  );
});

function RowLink({ item, isSelected }: { item: InboxItem; isSelected: boolean }) {
  const { id } = item.interrupt;
  const select = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    setQuery({ item: id });
    // On a phone, the question is below the list.
    requestAnimationFrame(() => {
      if (matchMedia("(max-width: 48rem)").matches) document.getElementById(`card-${id}`)?.scrollIntoView();
    });
  };
  return (
    <Link
      id={`row-${id}`}
      href={hrefOf(["inbox"], { item: id })}
      aria-current={isSelected ? "true" : undefined}
      onClick={select}
    >
      <span className="inbox-row-top">
        <strong>
          <bdi>{agentName(item.graph_id)}</bdi>
        </strong>
        <RowState item={item} />
      </span>
      <span className="inbox-row-subject">
        <bdi>{visibleText(subjectOf(item))}</bdi>
      </span>
    </Link>
  );
}

function RowState({ item }: { item: InboxItem }) {
  const outgoing = useOutgoing(item);
  const draft = useDraft(item.interrupt.id);
  if (outgoing) {
    const { name } = outgoing.phase;
    const isBad = name === "refused" || name === "taken";
    return <Badge tone={isBad ? "warn" : "good"}>{text.phases[name]}</Badge>;
  }
  return (
    <span className="row small">
      {hasDraft(draft) && <Badge>{text.draft}</Badge>}
      {item.deadline ? (
        <Badge tone={item.is_overdue ? "bad" : "warn"}>
          {item.is_overdue ? text.facts.overdue : text.due} <Time at={item.deadline} />
        </Badge>
      ) : (
        <span className="muted">
          <Time at={item.asked_at} />
        </span>
      )}
    </span>
  );
}
