import { useCallback, useMemo, useState } from "react";
import { Link } from "../../app/Link.tsx";
import { hrefOf, setQuery, usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import type { AnswerKey } from "../../pure/answers.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { chooseByKey } from "./answering.ts";
import { InboxDetail } from "./InboxDetail.tsx";
import { InboxList } from "./InboxList.tsx";
import { KeysDialog } from "./KeysDialog.tsx";
import { MessageList } from "./MessageList.tsx";
import { showNote } from "./messages.ts";
import { undo } from "./outbox.ts";
import { useDepartures } from "./useDepartures.ts";
import { type Inbox, PAGE, useInbox } from "./useInbox.ts";
import { useKeys } from "./useKeys.ts";
import { type Selection, useAdvance, useSelection } from "./useSelection.ts";
import "./inbox.css";

/** Everything that waits for a person, and the means to answer it. */
export default function InboxView() {
  const id = usePageLocation().query.get("item") ?? undefined;
  const [offsets, setOffsets] = useState<readonly number[]>([0]);
  const [kept, setKept] = useState(0);
  const inbox = useInbox(useMemo(() => [...new Set([...offsets, kept])], [offsets, kept]));
  const selection = useSelection(id, inbox);
  const { found } = selection;
  // The page of the selected item is asked for also when the list is scrolled elsewhere.
  const page = found ? Math.floor(found.place / PAGE) * PAGE : kept;
  if (page !== kept) setKept(page);
  useAdvance(id, inbox, selection);
  const arrived = useDepartures(inbox, id);
  const [isHelp, setHelp] = useState(false);
  useInboxKeys(
    inbox,
    selection,
    useCallback(() => setHelp(true), []),
  );
  return (
    <div className="inbox">
      <header className="row inbox-top">
        <h1>{text.title}</h1>
        <p className="muted" role="status">
          {inbox.isLoading ? "" : text.waiting(inbox.total)}
        </p>
        <span className="spacer" />
        <Button kind="quiet" className="inbox-keys" aria-keyshortcuts="?" onClick={() => setHelp(true)}>
          {text.keys.open}{" "}
          <span className="inbox-key" aria-hidden="true">
            ?
          </span>
        </Button>
      </header>
      <p className="visually-hidden" role="status">
        {arrived}
      </p>
      <MessageList />
      <InboxBody inbox={inbox} selection={selection} onOffsets={setOffsets} />
      <KeysDialog isOpen={isHelp} onClose={() => setHelp(false)} />
    </div>
  );
}

interface InboxBodyProps {
  inbox: Inbox;
  selection: Selection;
  onOffsets: (offsets: readonly number[]) => void;
}

function InboxBody({ inbox, selection, onOffsets }: InboxBodyProps) {
  if (inbox.error !== undefined && inbox.error !== null)
    return <Failure error={inbox.error} onRetry={inbox.retry} />;
  if (inbox.isLoading) return <Loading what={text.title} />;
  if (inbox.total === 0 && !selection.found) {
    return (
      <Notice title={text.empty}>
        <p>{text.emptyNext}</p>
        <Link href={hrefOf(["start"])}>{text.emptyStart}</Link>
      </Notice>
    );
  }
  return (
    <div className="inbox-panes" data-open={selection.found !== undefined || selection.missing !== undefined}>
      <InboxList inbox={inbox} selected={selection.found} onOffsets={onOffsets} />
      <InboxDetail inbox={inbox} selection={selection} />
    </div>
  );
}

function useInboxKeys(inbox: Inbox, { found, group, closed }: Selection, showHelp: () => void): void {
  const may = useMay();
  const move = (by: number) => () => {
    const next = inbox.places.get(found ? found.place + by : 0);
    if (!next) return;
    setQuery({ item: next.interrupt.id });
    // The row may be drawn only after the list has scrolled to it.
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        document.getElementById(`row-${next.interrupt.id}`)?.focus({ preventScroll: true }),
      ),
    );
  };
  const answer = (key: AnswerKey) => () => {
    if (found && !closed && may("answer")) chooseByKey(group, found.item, key);
  };
  useKeys({
    j: move(1),
    k: move(-1),
    a: answer("a"),
    e: answer("e"),
    r: answer("r"),
    i: answer("i"),
    u: () => showNote(undo() ? text.undone : text.nothingToUndo),
    "?": showHelp,
  });
}
