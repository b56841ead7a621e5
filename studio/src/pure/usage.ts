/** What runs used, added up by day and by agent. */

import type { CallTotals, ThreadTrace } from "../api/types.ts";

/** A run, as far as usage counts it. */
export interface UsedRun {
  thread: string;
  agent: string;
  /** Milliseconds since 1970. */
  startedAt: number;
  totals: CallTotals;
}

export interface UsageRow {
  /** A day (`2030-01-31`) or the name of an agent. */
  name: string;
  runs: number;
  totals: CallTotals;
}

export const NO_CALLS: CallTotals = {
  model_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  nano_dollars: 0,
  calls_of_unknown_cost: 0,
};

/** Returns the runs of a trace. Spans inside of them are left: their calls are in the sums of the run. */
export function runsOfTrace(trace: ThreadTrace): UsedRun[] {
  return trace.runs.map((run) => ({
    thread: trace.thread_id,
    agent: run.graph_id ?? run.name,
    startedAt: Date.parse(run.started_at),
    totals: run.cost,
  }));
}

export function addTotals(a: CallTotals, b: CallTotals): CallTotals {
  return {
    model_calls: a.model_calls + b.model_calls,
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    nano_dollars: a.nano_dollars + b.nano_dollars,
    calls_of_unknown_cost: a.calls_of_unknown_cost + b.calls_of_unknown_cost,
  };
}

/** Adds runs up by a name. The rows are in the order in which the names come first. */
export function sumBy(runs: readonly UsedRun[], nameOf: (run: UsedRun) => string): UsageRow[] {
  const rows = new Map<string, UsageRow>();
  for (const run of runs) {
    const name = nameOf(run);
    const row = rows.get(name) ?? { name, runs: 0, totals: NO_CALLS };
    rows.set(name, { name, runs: row.runs + 1, totals: addTotals(row.totals, run.totals) });
  }
  return [...rows.values()];
}

/** Returns one row for each of the last `days` days up to `now`, also for days without runs. */
export function usageByDay(runs: readonly UsedRun[], now: number, days: number): UsageRow[] {
  const found = new Map(sumBy(runs, (run) => dayOf(run.startedAt)).map((row) => [row.name, row]));
  return lastDays(now, days).map((name) => found.get(name) ?? { name, runs: 0, totals: NO_CALLS });
}

/** Returns one row for each agent, the most expensive first. */
export function usageByAgent(runs: readonly UsedRun[]): UsageRow[] {
  return sumBy(runs, (run) => run.agent).sort(
    (a, b) =>
      b.totals.nano_dollars - a.totals.nano_dollars || b.runs - a.runs || a.name.localeCompare(b.name),
  );
}

export function usageTotal(runs: readonly UsedRun[]): UsageRow {
  return sumBy(runs, () => "")[0] ?? { name: "", runs: 0, totals: NO_CALLS };
}

/** Returns the runs of the last days, and of one agent if it is named. */
export function selectRuns(
  runs: readonly UsedRun[],
  now: number,
  days: number,
  agent: string | undefined,
): UsedRun[] {
  const [first = ""] = lastDays(now, days);
  return runs.filter((run) => dayOf(run.startedAt) >= first && (!agent || run.agent === agent));
}

/** The calendar day of a time, where the visitor is. */
export function dayOf(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Noon of each day: a day of 23 or 25 hours does not skip or repeat one. */
function lastDays(now: number, days: number): string[] {
  const date = new Date(now);
  return Array.from({ length: days }, (_, index) =>
    dayOf(new Date(date.getFullYear(), date.getMonth(), date.getDate() - (days - 1 - index), 12).getTime()),
  );
}

export type UsageMeasure = "cost" | "tokens" | "runs";

export function measureOf(row: UsageRow, measure: UsageMeasure): number {
  if (measure === "cost") return row.totals.nano_dollars;
  if (measure === "tokens") return row.totals.input_tokens + row.totals.output_tokens;
  return row.runs;
}

/** Returns a round number that is at least `value`: where the axis of a chart ends. */
export function axisEnd(value: number): number {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * unit >= value) ?? 10) * unit;
}
