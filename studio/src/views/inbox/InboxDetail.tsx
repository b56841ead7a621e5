import { useEffect, useRef } from "react";
import type { InboxItem } from "../../api/types.ts";
import { setQuery } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import type { AnswerKey } from "../../pure/answers.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { AnswerValue, TakenNotice } from "./AnswerStatus.tsx";
import { chooseByKey } from "./answering.ts";
import { BulkButton } from "./BulkDialog.tsx";
import { useDraft } from "./drafts.ts";
import { InterruptCard } from "./InterruptCard.tsx";
import { useOutbox } from "./outbox.ts";
import { QuestionGroup } from "./QuestionGroup.tsx";
import type { Inbox } from "./useInbox.ts";
import { useKeys } from "./useKeys.ts";
import { openFrom, type Selection } from "./useSelection.ts";

/** The selected question, with the others of its thread. */
export default function InboxDetail({ inbox, selection }: { inbox: Inbox; selection: Selection }) {
  const { found, group, missing, closed } = selection;
  const may = useMay();
  useAnswerKeys(selection);
  const pane = useRef<HTMLElement>(null);
  const id = found?.item.interrupt.id;
  useEffect(() => {
    pane.current?.scrollTo({ top: 0 });
    // Whatever had the focus has left with the question before.
    if (id && document.activeElement === document.body && pane.current?.dataset.before) pane.current.focus();
    if (pane.current && id) pane.current.dataset.before = id;
  }, [id]);
  return (
    <section ref={pane} className="inbox-detail" tabIndex={-1} aria-label={text.facts.title}>
      <Button kind="quiet" className="inbox-back" onClick={() => setQuery({ item: undefined })}>
        <span aria-hidden="true">‹</span> {text.toList}
      </Button>
      {missing === "looking" && <p role="status">{text.looking}</p>}
      {missing === "gone" && (
        <Notice title={text.gone}>
          <p>{text.goneNext}</p>
          <NextButton inbox={inbox} place={0} />
        </Notice>
      )}
      {!found && !missing && <p className="muted">{text.choose}</p>}
      {found && closed && <ClosedCard inbox={inbox} item={found.item} place={found.place} closed={closed} />}
      {found && !closed && <QuestionGroup key={found.item.thread_id} group={group} current={id} />}
      {found && !closed && may("answer") && <BulkButton item={found.item} places={inbox.places} />}
    </section>
  );
}

function useAnswerKeys({ found, group, closed }: Selection): void {
  const may = useMay();
  const answer = (key: AnswerKey) => () => {
    if (found && !closed && may("answer")) chooseByKey(group, found.item, key);
  };
  useKeys({ a: answer("a"), e: answer("e"), r: answer("r"), i: answer("i") });
}

interface ClosedCardProps {
  inbox: Inbox;
  item: InboxItem;
  place: number;
  closed: NonNullable<Selection["closed"]>;
}

/** A question that was answered while it was read: it stays until the reader goes on, and so does what was entered. */
function ClosedCard({ inbox, item, place, closed }: ClosedCardProps) {
  const draft = useDraft(item.interrupt.id);
  const entered = Object.values(draft).flatMap((part) => Object.values(part.entered));
  const notice = (
    <div className="stack">
      <TakenNotice raised={closed.raised} />
      {entered.length > 0 && (
        <section className="stack">
          <h3>{text.yourDraft}</h3>
          {entered.map((value, at) => (
            <AnswerValue key={at} value={value} />
          ))}
        </section>
      )}
      <NextButton inbox={inbox} place={place} />
    </div>
  );
  return <InterruptCard group={[item]} item={item} isCurrent closed={notice} />;
}

function NextButton({ inbox, place }: { inbox: Inbox; place: number }) {
  const outbox = useOutbox();
  const next = openFrom(place, inbox.total, inbox.places, outbox);
  return (
    <Button onClick={() => setQuery({ item: next?.interrupt.id })} className="inbox-next">
      {next ? text.next : text.toList}
    </Button>
  );
}
