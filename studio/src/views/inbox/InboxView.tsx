import { Suspense, useCallback, useMemo, useState } from "react";
import { ErrorBoundary } from "../../app/ErrorBoundary.tsx";
import { Link } from "../../app/Link.tsx";
import { afterPaint, lazyView, useLoadedWhenIdle } from "../../app/lazy_view.ts";
import { hrefOf, setQuery, usePageLocation } from "../../app/location.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { InboxList } from "./InboxList.tsx";
import { MessageList } from "./MessageList.tsx";
import { showNote } from "./messages.ts";
import { undo } from "./outbox.ts";
import { useDepartures } from "./useDepartures.ts";
import { type Inbox, PAGE, useInbox } from "./useInbox.ts";
import { useKeys } from "./useKeys.ts";
import { type Selection, useAdvance, useSelection } from "./useSelection.ts";
import "./inbox.css";

// The list is the first view; what a question needs is much more, and loads while the list is read.
const loadDetail = () => import("./InboxDetail.tsx");
const loadKeys = () => import("./KeysDialog.tsx");
const loadLater = () => Promise.all([loadDetail(), loadKeys()]);
const InboxDetail = lazyView(async () => {
  await afterPaint();
  return await loadDetail();
});
const KeysDialog = lazyView(loadKeys);

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
  useLoadedWhenIdle(!inbox.isLoading && inbox.error === undefined, loadLater);
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
      {isHelp && (
        <Suspense>
          <KeysDialog isOpen onClose={() => setHelp(false)} />
        </Suspense>
      )}
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
      <ErrorBoundary>
        <Suspense fallback={<DetailLoading />}>
          <InboxDetail inbox={inbox} selection={selection} />
        </Suspense>
      </ErrorBoundary>
    </div>
  );
}

/** Takes the place of the question, so that nothing moves when it is there. */
function DetailLoading() {
  return (
    <section className="inbox-detail" aria-label={text.facts.title}>
      <Loading what={text.facts.title} />
    </section>
  );
}

/** The keys that move. Those that answer come with the question: nobody answers what is not on screen. */
function useInboxKeys(inbox: Inbox, { found }: Selection, showHelp: () => void): void {
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
  useKeys({
    j: move(1),
    k: move(-1),
    u: () => showNote(undo() ? text.undone : text.nothingToUndo),
    "?": showHelp,
  });
}
