import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import type { Budget } from "../../api/types.ts";
import { usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { shortId } from "../../pure/format.ts";
import { operate } from "../../text/operate.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { budgetsQuery, PAGE_SIZE, raiseQuery } from "./api.ts";
import { formatAmount, type MeterAmounts, metersOf, scaleName, scalesOf } from "./budgets.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign, ThreadLink } from "./Foreign.tsx";
import { Fetched, Filters, Frame, NoMatch, Pager, SelectFilter, TextFilter, useOffset } from "./parts.tsx";
import { RaiseDialog } from "./RaiseDialog.tsx";

const text = operate.budgets;

export default function BudgetsView() {
  const { query } = usePageLocation();
  const offset = useOffset();
  const budgets = useQuery(budgetsQuery(offset));
  const level = query.get("level");
  const thread = query.get("thread");
  return (
    <Frame title={text.title} lead={text.lead}>
      <Filters>
        <SelectFilter
          name="level"
          label={text.level}
          options={Object.entries(text.levels)}
          all={operate.all}
        />
        <TextFilter name="thread" label={text.threadFilter} />
      </Filters>
      <Fetched query={budgets} what={text.what}>
        {(found) => {
          if (found.length === 0) return <NoBudgets />;
          const page = found.slice(0, PAGE_SIZE);
          const shown = page.filter(
            (each) => (!level || each.level === level) && (!thread || each.thread_id?.includes(thread)),
          );
          return (
            <>
              {shown.length === 0 ? (
                <NoMatch filters={["level", "thread"]} />
              ) : (
                <BudgetTable budgets={shown} />
              )}
              <Pager
                offset={offset}
                shown={page.length}
                size={PAGE_SIZE}
                hasNext={found.length > PAGE_SIZE}
              />
            </>
          );
        }}
      </Fetched>
    </Frame>
  );
}

function NoBudgets() {
  return (
    <Notice title={text.emptyTitle}>
      <p>{text.emptyNext}</p>
    </Notice>
  );
}

/** Whether the visitor may raise a budget on this server. */
function useMayRaise(): boolean {
  const may = useMay();
  const { data } = useQuery(raiseQuery);
  return data !== undefined && data !== null && (data.length === 0 || data.some(may));
}

function BudgetTable({ budgets }: { budgets: readonly Budget[] }) {
  const mayRaise = useMayRaise();
  const [chosen, setChosen] = useState<Budget>();
  const scales = useMemo(() => scalesOf(budgets), [budgets]);
  const columns: Column<Budget>[] = [
    { name: text.whose, isRowName: true, cell: (row) => <Whose budget={row} /> },
    { name: text.used, cell: (row) => <Meters budget={row} scales={scales} /> },
    { name: text.changed, cell: (row) => <Time at={row.updated_at} /> },
  ];
  if (mayRaise) {
    columns.push({
      name: operate.actions,
      cell: (row) =>
        row.spent && (
          <Button aria-label={text.raiseOf(nameOf(row))} onClick={() => setChosen(row)}>
            {text.raise}
          </Button>
        ),
    });
  }
  return (
    <>
      <p className="muted small">{text.scale}</p>
      <DataTable
        caption={text.caption}
        columns={columns}
        rows={budgets}
        keyOf={(row) => `${row.level} ${row.thread_id} ${row.run_id}`}
      />
      {chosen && <RaiseDialog budget={chosen} whose={nameOf(chosen)} onClose={() => setChosen(undefined)} />}
    </>
  );
}

function nameOf(budget: Budget): string {
  if (budget.level === "tenant") return text.tenant;
  const thread = `${operate.thread} ${shortId(budget.thread_id ?? "")}`;
  return budget.run_id ? `${text.runOf(shortId(budget.run_id))}, ${thread}` : thread;
}

function Whose({ budget }: { budget: Budget }) {
  return (
    <>
      <Badge>{text.levels[budget.level]}</Badge>{" "}
      {budget.thread_id ? <ThreadLink id={budget.thread_id} /> : text.tenant}
      {budget.run_id && (
        <p className="muted small">
          <Foreign text={text.runOf(shortId(budget.run_id))} />
        </p>
      )}
    </>
  );
}

function Meters({ budget, scales }: { budget: Budget; scales: ReadonlyMap<string, number> }) {
  const meters = metersOf(budget);
  if (!meters) return <p className="muted">{text.unreadable}</p>;
  return meters.map((meter) => (
    <MeterBar key={meter.meter} amounts={meter} scale={scales.get(scaleName(budget, meter.meter)) ?? 0} />
  ));
}

/** The text says all; the bar is for comparing. */
function MeterBar({ amounts, scale }: { amounts: MeterAmounts; scale: number }) {
  const { meter, spent, reserved, raised } = amounts;
  const percent = (value: number) => `${scale > 0 ? (value / scale) * 100 : 0}%`;
  const said = [
    text.spent(formatAmount(meter, spent)),
    ...(reserved > 0 ? [text.reserved(formatAmount(meter, reserved))] : []),
    raised === undefined ? text.noLimit : text.limit(formatAmount(meter, raised)),
  ];
  return (
    <div className="operate-meter">
      <span>
        <strong>
          <Foreign text={text.meters[meter] ?? meter} max={40} />
        </strong>{" "}
        {said.join(" · ")}
      </span>
      <span className="operate-bar" aria-hidden="true">
        <span className="spent" style={{ inlineSize: percent(spent) }} />
        <span className="reserved" style={{ inlineSize: percent(reserved) }} />
        {raised !== undefined && (
          <span className="limit" style={{ insetInlineStart: `calc(${percent(raised)} - 3px)` }} />
        )}
      </span>
    </div>
  );
}
