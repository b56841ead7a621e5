import { useQuery } from "@tanstack/react-query";

import type { Cron } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { operate } from "../../text/operate.ts";
import { Notice } from "../../ui/Notice.tsx";
import { cronsQuery, errorText, PAGE_SIZE } from "./api.ts";
import { useAssistants } from "./assistants.ts";
import { CronDetail } from "./CronDetail.tsx";
import { CronForm } from "./CronForm.tsx";
import { CronButtons, CronState, NextRun, ScheduleWords } from "./CronParts.tsx";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign } from "./Foreign.tsx";
import { Fetched, Filters, Frame, NoMatch, Pager, SelectFilter, useOffset } from "./parts.tsx";

const text = operate.crons;

export default function CronsView({ path }: { path: string[] }) {
  const may = useMay();
  const [cron] = path;
  if (cron === "new" && may("run")) return <CronForm />;
  return cron && cron !== "new" ? <CronDetail id={cron} /> : <CronList />;
}

function CronList() {
  const may = useMay();
  const { query } = usePageLocation();
  const { assistants } = useAssistants();
  const offset = useOffset();
  const state = query.get("enabled");
  const assistant = query.get("assistant") ?? undefined;
  const enabled = state === null ? undefined : state === "true";
  const crons = useQuery(cronsQuery({ assistant, enabled, offset }));
  const create = may("run") && (
    <Link className="button" data-kind="primary" href={hrefOf(["crons", "new"])}>
      {text.create}
    </Link>
  );
  return (
    <Frame title={text.title} lead={text.lead} actions={create}>
      <Filters>
        <SelectFilter
          name="enabled"
          label={text.state}
          options={Object.entries(text.states)}
          all={operate.all}
        />
        <SelectFilter
          name="assistant"
          label={operate.assistant}
          options={assistants.map((each) => [each.assistant_id, each.name])}
          all={operate.all}
        />
      </Filters>
      <Fetched query={crons} what={text.what}>
        {({ items, total, next }) => {
          if (items.length === 0 && (state || assistant))
            return <NoMatch filters={["enabled", "assistant"]} />;
          if (items.length === 0) return <NoCrons />;
          return (
            <>
              <CronTable crons={items} />
              <Pager
                offset={offset}
                shown={items.length}
                size={PAGE_SIZE}
                hasNext={next !== undefined}
                total={total}
              />
            </>
          );
        }}
      </Fetched>
    </Frame>
  );
}

function NoCrons() {
  const may = useMay();
  return (
    <Notice title={text.emptyTitle}>
      <p>{may("run") ? text.emptyNext : text.emptyReadOnly}</p>
    </Notice>
  );
}

function CronTable({ crons }: { crons: readonly Cron[] }) {
  const may = useMay();
  const { nameOf } = useAssistants();
  const columns: Column<Cron>[] = [
    {
      name: operate.assistant,
      isRowName: true,
      cell: (cron) => (
        <Link href={hrefOf(["crons", cron.cron_id])}>
          <Foreign text={nameOf(cron.assistant_id)} />
        </Link>
      ),
    },
    { name: text.schedule, cell: (cron) => <ScheduleWords cron={cron} /> },
    { name: text.next, cell: (cron) => <NextRun cron={cron} /> },
    {
      name: text.state,
      cell: (cron) => {
        const problem = errorText(cron.last_error);
        return (
          <>
            <CronState cron={cron} />
            {problem && (
              <p className="field-problem">
                {text.problem}: <Foreign text={problem} max={100} />
              </p>
            )}
          </>
        );
      },
    },
  ];
  if (may("run")) {
    columns.push({
      name: operate.actions,
      cell: (cron) => <CronButtons cron={cron} agent={nameOf(cron.assistant_id)} />,
    });
  }
  return <DataTable caption={text.caption} columns={columns} rows={crons} keyOf={(cron) => cron.cron_id} />;
}
