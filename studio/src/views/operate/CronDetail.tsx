import { useQuery } from "@tanstack/react-query";

import type { Json } from "../../api/json.ts";
import type { Cron } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, navigate } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { operate } from "../../text/operate.ts";
import { Badge, type Tone } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { Failure, Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import {
  type CronResult,
  changeCron,
  cronQuery,
  cronResultsQuery,
  errorText,
  refreshOperate,
} from "./api.ts";
import { useAssistants } from "./assistants.ts";
import { CronButtons, CronState, NextRun, ScheduleWords } from "./CronParts.tsx";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign, ThreadLink } from "./Foreign.tsx";
import { Facts, Fetched, Frame, useAction } from "./parts.tsx";

const text = operate.crons;
const TONES: Readonly<Record<string, Tone>> = {
  success: "good",
  idle: "good",
  error: "bad",
  timeout: "bad",
  interrupted: "warn",
  busy: "accent",
  running: "accent",
};

export function CronDetail({ id }: { id: string }) {
  const { nameOf } = useAssistants();
  const cron = useQuery(cronQuery(id));
  const agent = cron.data ? nameOf(cron.data.assistant_id) : "…";
  return (
    <Frame title={text.detail(agent)}>
      <Link href={hrefOf(["crons"])}>{text.back}</Link>
      <Fetched query={cron} what={text.what}>
        {(data) => <CronFacts cron={data} agent={agent} />}
      </Fetched>
    </Frame>
  );
}

function CronFacts({ cron, agent }: { cron: Cron; agent: string }) {
  const may = useMay();
  const problem = errorText(cron.last_error);
  return (
    <>
      {may("run") && (
        <CronButtons cron={cron} agent={agent} onDeleted={() => navigate(hrefOf(["crons"]), "replace")} />
      )}
      {problem && (
        <Notice tone="bad" title={text.problemNext.title}>
          <Foreign text={problem} max={400} />
          <p>{text.problemNext.next}</p>
        </Notice>
      )}
      <Facts
        facts={[
          [text.whenTitle, <ScheduleWords key="w" cron={cron} />],
          [text.next, <NextRun key="n" cron={cron} />],
          [text.state, <CronState key="s" cron={cron} />],
          [text.ends, cron.end_time ? <Time key="e" at={cron.end_time} /> : text.noEnd],
          [text.where, cron.thread_id ? <ThreadLink key="t" id={cron.thread_id} /> : text.ownThreads],
          [text.created, <Time key="c" at={cron.created_at} />],
        ]}
      />
      <h2>{text.results}</h2>
      <CronResults cron={cron} />
      <h2>{text.payload}</h2>
      <div className="card">
        <JsonTree name={text.payload} value={cron.payload as Json} />
      </div>
    </>
  );
}

function CronResults({ cron }: { cron: Cron }) {
  const results = useQuery(cronResultsQuery(cron));
  const columns: Column<CronResult>[] = [
    { name: text.started, isRowName: true, cell: (row) => <Time at={row.startedAt} /> },
    {
      name: text.result,
      cell: (row) => (
        <>
          <Badge tone={TONES[row.status] ?? "plain"}>{row.status}</Badge>{" "}
          {row.error && <Foreign text={row.error} />}
        </>
      ),
    },
    { name: operate.thread, cell: (row) => <ThreadLink id={row.thread} /> },
  ];
  return (
    <Fetched query={results} what={text.results}>
      {(rows) =>
        rows.length === 0 ? (
          <NoResults cron={cron} />
        ) : (
          <DataTable
            caption={text.resultsCaption}
            columns={columns}
            rows={rows}
            keyOf={(row) => `${row.thread} ${row.startedAt}`}
          />
        )
      }
    </Fetched>
  );
}

function NoResults({ cron }: { cron: Cron }) {
  const may = useMay();
  const keep = useAction(
    () => changeCron(cron.cron_id, { on_run_completed: "keep" }),
    () => void refreshOperate("crons"),
  );
  if (cron.thread_id || cron.on_run_completed === "keep") {
    return (
      <Notice title={text.noResults}>
        <p>{text.noResultsNext}</p>
      </Notice>
    );
  }
  return (
    <Notice title={text.deletedResults}>
      <p>{text.deletedResultsNext}</p>
      {may("run") && (
        <Button disabled={keep.isBusy} onClick={() => keep.run()}>
          {text.keepResults}
        </Button>
      )}
      {keep.error && <Failure error={keep.error} />}
    </Notice>
  );
}
