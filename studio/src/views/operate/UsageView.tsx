import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { formatCost, formatCount } from "../../pure/format.ts";
import {
  selectRuns,
  type UsageMeasure,
  type UsageRow,
  usageByAgent,
  usageByDay,
  usageTotal,
} from "../../pure/usage.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { type ReadUsage, usageQuery } from "./api.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign } from "./Foreign.tsx";
import { Facts, Filters, Frame, SelectFilter } from "./parts.tsx";
import { AgentChart, DayChart } from "./UsageCharts.tsx";

const text = operate.usage;
const LIMITS = [100, 25, 400, 1000] as const;
const PERIODS = [30, 7, 90] as const;
const MEASURES = Object.keys(text.measures) as UsageMeasure[];

export default function UsageView() {
  const { query } = usePageLocation();
  const [progress, setProgress] = useState<readonly [done: number, all: number]>([0, 0]);
  const limit = LIMITS.find((each) => String(each) === query.get("threads")) ?? LIMITS[0];
  const usage = useQuery(usageQuery(limit, (done, all) => setProgress([done, all])));
  const refresh = (
    <Button onClick={() => void usage.refetch()} disabled={usage.isFetching}>
      {text.refresh}
    </Button>
  );
  return (
    <Frame title={text.title} lead={text.lead} actions={refresh}>
      <UsageFilters usage={usage.data} />
      <p role="status" className="muted">
        {usage.isFetching && text.reading(progress[0], progress[1])}
      </p>
      {usage.error && !usage.data && <Failure error={usage.error} onRetry={() => void usage.refetch()} />}
      {usage.data && <Usage usage={usage.data} limit={limit} />}
    </Frame>
  );
}

function UsageFilters({ usage }: { usage: ReadUsage | undefined }) {
  const agents = useMemo(() => [...new Set(usage?.runs.map((run) => run.agent))].sort(), [usage]);
  const sorted = (values: readonly number[]) => [...values].sort((a, b) => a - b);
  return (
    <Filters>
      <SelectFilter name="measure" label={text.measure} options={Object.entries(text.measures)} />
      <DefaultSelect
        name="days"
        label={text.days}
        values={sorted(PERIODS)}
        initial={PERIODS[0]}
        say={text.dayCount}
      />
      <SelectFilter
        name="agent"
        label={text.agent}
        options={agents.map((agent) => [agent, agent])}
        all={operate.all}
      />
      <DefaultSelect
        name="threads"
        label={text.threads}
        values={sorted(LIMITS)}
        initial={LIMITS[0]}
        say={text.newest}
      />
    </Filters>
  );
}

/** A choice of numbers; the default is not in the address. */
function DefaultSelect(props: {
  name: string;
  label: string;
  values: readonly number[];
  initial: number;
  say: (value: number) => string;
}) {
  const others = props.values.filter((value) => value !== props.initial);
  return (
    <SelectFilter
      name={props.name}
      label={props.label}
      all={props.say(props.initial)}
      options={others.map((value) => [String(value), props.say(value)])}
    />
  );
}

function Usage({ usage, limit }: { usage: ReadUsage; limit: number }) {
  const { query } = usePageLocation();
  const measure = MEASURES.find((each) => each === query.get("measure")) ?? "cost";
  const days = PERIODS.find((each) => String(each) === query.get("days")) ?? PERIODS[0];
  const agent = query.get("agent") ?? undefined;
  const folded = useMemo(() => {
    const runs = selectRuns(usage.runs, usage.readAt, days, agent);
    return {
      total: usageTotal(runs),
      byDay: usageByDay(runs, usage.readAt, days),
      byAgent: usageByAgent(runs),
    };
  }, [usage, days, agent]);
  const { total, byDay, byAgent } = folded;
  return (
    <>
      <UsageNotes usage={usage} limit={limit} total={total} />
      {total.runs === 0 ? (
        <Notice title={text.emptyTitle}>
          <p>{text.emptyNext}</p>
          <Link href={hrefOf(["start"])}>{text.start}</Link>
        </Notice>
      ) : (
        <>
          <UsageTotals total={total} />
          <section className="stack">
            <h2>{text.byDay(text.measures[measure])}</h2>
            <div className="operate-usage">
              <DayChart rows={byDay} measure={measure} total={total} />
              <UsageTable
                caption={text.byDay(text.measures[measure])}
                first={text.day}
                rows={onlyUsed(byDay)}
              />
            </div>
            <p className="muted small">{text.onlyDays}</p>
          </section>
          <section className="stack">
            <h2>{text.byAgent(text.measures[measure])}</h2>
            <div className="operate-usage">
              <AgentChart rows={byAgent} measure={measure} total={total} />
              <UsageTable caption={text.byAgent(text.measures[measure])} first={text.agent} rows={byAgent} />
            </div>
          </section>
        </>
      )}
    </>
  );
}

/** The newest day first, as in other lists. */
function onlyUsed(rows: readonly UsageRow[]): UsageRow[] {
  return rows.filter((row) => row.runs > 0).reverse();
}

function UsageNotes({ usage, limit, total }: { usage: ReadUsage; limit: number; total: UsageRow }) {
  const unknown = total.totals.calls_of_unknown_cost;
  return (
    <div className="stack">
      <p className="muted small">
        {text.counted(usage.threads, limit, usage.total)} {text.readAt}{" "}
        <Time at={new Date(usage.readAt).toISOString()} />.
      </p>
      {usage.failed > 0 && <p className="operate-hint">{text.failed(usage.failed)}</p>}
      {unknown > 0 && <p className="operate-hint">{text.unknownCost(unknown)}</p>}
    </div>
  );
}

function UsageTotals({ total }: { total: UsageRow }) {
  const { totals } = total;
  return (
    <Facts
      facts={[
        [text.cost, <strong key="c">{formatCost(totals)}</strong>],
        [text.runs, <strong key="r">{formatCount(total.runs)}</strong>],
        [text.input, <strong key="i">{formatCount(totals.input_tokens)}</strong>],
        [text.output, <strong key="o">{formatCount(totals.output_tokens)}</strong>],
      ]}
    />
  );
}

function UsageTable({ caption, first, rows }: { caption: string; first: string; rows: readonly UsageRow[] }) {
  const columns: Column<UsageRow>[] = [
    { name: first, isRowName: true, cell: (row) => <Foreign text={row.name} max={60} /> },
    { name: text.runs, isNumber: true, cell: (row) => formatCount(row.runs) },
    { name: text.input, isNumber: true, cell: (row) => formatCount(row.totals.input_tokens) },
    { name: text.output, isNumber: true, cell: (row) => formatCount(row.totals.output_tokens) },
    { name: text.cost, isNumber: true, cell: (row) => formatCost(row.totals) },
  ];
  return <DataTable caption={caption} columns={columns} rows={rows} keyOf={(row) => row.name} />;
}
