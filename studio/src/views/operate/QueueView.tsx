import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { cancelRun } from "../../api/actions.ts";
import type { QueuedRun, RunQueue } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { formatDuration, shortId } from "../../pure/format.ts";
import { operate } from "../../text/operate.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { PAGE_SIZE, QUEUE_SIZE, queueQuery, refreshOperate } from "./api.ts";
import { useAssistants } from "./assistants.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign, ThreadLink } from "./Foreign.tsx";
import {
  Confirm,
  Facts,
  Fetched,
  Filters,
  Frame,
  NoMatch,
  Pager,
  SelectFilter,
  useAction,
  useOffset,
} from "./parts.tsx";

const text = operate.queue;
/** As long as the server waits before it calls the queue stalled. */
const STUCK_MS = 300_000;

export default function QueueView() {
  const queue = useQuery(queueQuery);
  return (
    <Frame title={text.title} lead={text.lead}>
      <Fetched query={queue} what={text.what}>
        {(data) => <Queue queue={data} />}
      </Fetched>
    </Frame>
  );
}

function Queue({ queue }: { queue: RunQueue }) {
  const { query } = usePageLocation();
  const offset = useOffset();
  const { assistants } = useAssistants();
  const status = query.get("status");
  const assistant = query.get("assistant");
  if (queue.pending + queue.running === 0) {
    return (
      <Notice title={text.emptyTitle}>
        <Link href={hrefOf(["start"])}>{text.emptyNext}</Link>
      </Notice>
    );
  }
  const found = queue.runs
    .filter((run) => (!status || run.status === status) && (!assistant || run.assistant_id === assistant))
    // The server lists the newest first; what has waited longest is what an operator looks for.
    .reverse();
  const shown = found.slice(offset, offset + PAGE_SIZE);
  const statuses = Object.entries(text.statuses);
  return (
    <>
      <QueueFigures queue={queue} />
      <Filters>
        <SelectFilter name="status" label={operate.status} options={statuses} all={operate.all} />
        <SelectFilter
          name="assistant"
          label={operate.assistant}
          options={assistants.map((each) => [each.assistant_id, each.name])}
          all={operate.all}
        />
      </Filters>
      {found.length === 0 ? <NoMatch filters={["status", "assistant"]} /> : <QueueTable runs={shown} />}
      <Pager
        offset={offset}
        shown={shown.length}
        size={PAGE_SIZE}
        hasNext={found.length > offset + PAGE_SIZE}
        total={found.length}
      />
      {queue.runs.length === QUEUE_SIZE && <p className="muted small">{text.listed(QUEUE_SIZE)}</p>}
    </>
  );
}

function QueueFigures({ queue }: { queue: RunQueue }) {
  const oldest = (run: QueuedRun | null) =>
    run ? (
      <Link href={hrefOf(["threads", run.thread_id])}>
        {run.age_ms === 0 ? text.notDue : formatDuration(run.age_ms)}
      </Link>
    ) : (
      text.none
    );
  const isStuck = (queue.oldest_pending?.age_ms ?? 0) > STUCK_MS;
  return (
    <>
      <Facts
        facts={[
          [text.waiting, <strong key="n">{text.count(queue.pending, queue.is_complete)}</strong>],
          [text.longestWait, oldest(queue.oldest_pending)],
          [text.running, <strong key="n">{text.count(queue.running, queue.is_complete)}</strong>],
          [text.longestRun, oldest(queue.oldest_running)],
        ]}
      />
      {isStuck && (
        <p className="operate-hint">
          {text.stuck} <Link href={hrefOf(["health"])}>{operate.health.title}</Link>
        </p>
      )}
    </>
  );
}

function QueueTable({ runs }: { runs: readonly QueuedRun[] }) {
  const may = useMay();
  const { nameOf } = useAssistants();
  const [chosen, setChosen] = useState<QueuedRun>();
  const columns: Column<QueuedRun>[] = [
    { name: operate.assistant, isRowName: true, cell: (run) => <Foreign text={nameOf(run.assistant_id)} /> },
    { name: operate.thread, cell: (run) => <ThreadLink id={run.thread_id} /> },
    {
      name: operate.status,
      cell: (run) => (
        <Badge tone={run.status === "running" ? "accent" : "plain"}>{text.statuses[run.status]}</Badge>
      ),
    },
    {
      name: text.age,
      isNumber: true,
      // A run that was asked for later has not waited yet.
      cell: (run) => (run.age_ms === 0 ? <Time at={run.due_at} /> : formatDuration(run.age_ms)),
    },
    { name: text.attempts, isNumber: true, cell: (run) => run.attempts },
  ];
  if (may("run")) {
    const label = (run: QueuedRun) => text.cancelOf(nameOf(run.assistant_id), shortId(run.run_id));
    columns.push({
      name: operate.actions,
      cell: (run) => (
        <Button aria-label={label(run)} onClick={() => setChosen(run)}>
          {text.cancel}
        </Button>
      ),
    });
  }
  return (
    <>
      <DataTable caption={text.caption} columns={columns} rows={runs} keyOf={(run) => run.run_id} />
      {chosen && <CancelDialog run={chosen} onClose={() => setChosen(undefined)} />}
    </>
  );
}

function CancelDialog({ run, onClose }: { run: QueuedRun; onClose: () => void }) {
  const { nameOf } = useAssistants();
  const cancel = useAction(
    () => cancelRun(run.thread_id, run.run_id),
    () => {
      void refreshOperate("queue");
      onClose();
    },
  );
  return (
    <Confirm
      title={text.cancelTitle}
      yes={text.cancelYes}
      no={text.keep}
      action={cancel}
      onYes={() => cancel.run()}
      onClose={onClose}
    >
      <p>
        <Foreign text={nameOf(run.assistant_id)} /> · <bdi className="mono">{run.run_id}</bdi>
      </p>
      <p>{text.cancelWhat}</p>
    </Confirm>
  );
}
