import { useQuery } from "@tanstack/react-query";
import { memo, useEffect, useMemo } from "react";

import { interruptsQuery, threadQuery, traceQuery, treeQuery } from "../../api/queries.ts";
import type { Thread } from "../../api/types.ts";
import { ErrorBoundary } from "../../app/ErrorBoundary.tsx";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { shortId } from "../../pure/format.ts";
import { eventsOf, timelineOf } from "../../pure/timeline.ts";
import { thread as text } from "../../text/thread.ts";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { ThreadInterrupts } from "../inbox/ThreadInterrupts.tsx";
import { useMedia, WIDE } from "./media.ts";
import { useOlderCheckpoints } from "./older_checkpoints.ts";
import { assistantOf } from "./pane.ts";
import { usePrefetch, useSelection, useShownCheckpoint } from "./selection.ts";
import { ThreadHeader } from "./ThreadHeader.tsx";
import { ThreadPanes } from "./ThreadPanes.tsx";
import { Timeline } from "./Timeline.tsx";

/** They are not drawn again while the timeline is dragged. */
const Header = memo(ThreadHeader);
const Interrupts = memo(ThreadInterrupts);

/** A thread: what it waits for, and panes that show it at the selected checkpoint. */
export function ThreadView({ thread: id }: { thread: string }) {
  const { data: thread, error, refetch } = useQuery(threadQuery(id));
  if (thread) return <KnownThread thread={thread} />;
  return (
    <div className="view stack">
      <h1>{text.view.title}</h1>
      {error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading what={text.view.what} />}
      <Link href={hrefOf(["threads"])}>{text.view.back}</Link>
    </div>
  );
}

function KnownThread({ thread }: { thread: Thread }) {
  const known = assistantOf(thread);
  const name = known?.graph ?? text.list.noGraph;
  useEffect(() => {
    document.title = text.view.documentTitle(`${name} ${shortId(thread.thread_id)}`);
  }, [name, thread.thread_id]);
  if (known) return <RunThread thread={thread} {...known} />;
  return (
    <div className="thread">
      <ThreadHeader thread={thread} graph={undefined} assistant={undefined} checkpoint={undefined} />
      <NeverRun />
    </div>
  );
}

function NeverRun() {
  const may = useMay();
  return (
    <div className="thread-part">
      <Notice title={text.view.noRunTitle}>
        <p>{text.view.noRunNext}</p>
        {may("run") && <Link href={hrefOf(["start"])}>{text.view.start}</Link>}
      </Notice>
    </div>
  );
}

function RunThread({ thread, graph, assistant }: { thread: Thread; graph: string; assistant: string }) {
  const id = thread.thread_id;
  const isWide = useMedia(WIDE);
  const { selected, select } = useSelection();
  const shown = useShownCheckpoint(id, selected);
  const { tree, timeline, isLoadingOlder } = useTimeline(id, selected);
  usePrefetch(id, timeline, shown);
  const bar = timeline && tree && (
    <Timeline
      timeline={timeline}
      current={tree.current ?? undefined}
      missing={tree.is_complete ? undefined : { loaded: tree.checkpoints.length, isLoading: isLoadingOlder }}
      selected={selected}
      onSelect={select}
    />
  );
  return (
    <div className="thread" data-wide={isWide}>
      <Header
        thread={thread}
        graph={graph}
        assistant={assistant}
        checkpoint={shown ?? tree?.current ?? undefined}
      />
      {!isWide && (
        <ErrorBoundary>
          <div className="thread-interrupts">
            <Interrupts thread={id} />
          </div>
        </ErrorBoundary>
      )}
      {!isWide && bar}
      <ThreadPanes thread={thread} graph={graph} assistant={assistant} checkpoint={shown} isWide={isWide} />
      {isWide && bar}
    </div>
  );
}

/** The checkpoints of the branch of the selected one, made again only if what the server says changed. */
function useTimeline(id: string, selected: string | undefined) {
  const { data: tree } = useQuery(treeQuery(id));
  const isLoadingOlder = useOlderCheckpoints(id, tree);
  const { data: interrupts } = useQuery(interruptsQuery(id));
  const { data: trace } = useQuery(traceQuery(id));
  const events = useMemo(() => eventsOf(interrupts, trace), [interrupts, trace]);
  // Moving along one branch leaves the timeline as it is.
  const isOnCurrent = useMemo(() => {
    const found = tree?.checkpoints.find((each) => each.checkpoint_id === selected);
    return found?.is_on_current_branch ?? true;
  }, [tree, selected]);
  const anchor = isOnCurrent ? undefined : selected;
  const timeline = useMemo(() => tree && timelineOf(tree, anchor, events), [tree, anchor, events]);
  return { tree, timeline, isLoadingOlder };
}
