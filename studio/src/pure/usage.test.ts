import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { TraceSpan } from "../api/types.ts";
import {
  axisEnd,
  dayOf,
  measureOf,
  NO_CALLS,
  runsOfTrace,
  selectRuns,
  type UsedRun,
  usageByAgent,
  usageByDay,
  usageTotal,
} from "./usage.ts";

const NOW = new Date(2030, 2, 31, 15).getTime();
const DAY_MS = 86_400_000;

const run = (agent: string, daysAgo: number, nanoDollars: number): UsedRun => ({
  thread: "t",
  agent,
  startedAt: NOW - daysAgo * DAY_MS,
  totals: { ...NO_CALLS, model_calls: 1, input_tokens: 10, output_tokens: 5, nano_dollars: nanoDollars },
});

describe("usage", () => {
  test("days without runs are zero, not missing", () => {
    const rows = usageByDay([run("mail", 0, 5), run("mail", 2, 7)], NOW, 4);
    expect(rows.map((row) => row.runs)).toEqual([0, 1, 0, 1]);
    expect(rows.at(-1)?.name).toBe(dayOf(NOW));
  });

  test("agents are sorted by cost", () => {
    const rows = usageByAgent([run("mail", 0, 5), run("sheet", 0, 7), run("mail", 1, 1)]);
    expect(rows.map(({ name, runs }) => [name, runs])).toEqual([
      ["sheet", 1],
      ["mail", 2],
    ]);
  });

  test("the calls inside of a run are counted once", () => {
    const cost = { ...NO_CALLS, model_calls: 1, nano_dollars: 3 };
    const span = (kind: string, spans: TraceSpan[]): TraceSpan => ({
      span_id: kind,
      name: kind,
      kind,
      started_at: "2030-01-01T00:00:00Z",
      ended_at: null,
      duration_ms: null,
      error: null,
      cost,
      attributes: {},
      spans,
    });
    const trace = {
      thread_id: "t",
      cost,
      runs: [span("run", [span("node", [span("model", [])])])],
      is_complete: true,
    };
    expect(usageTotal(runsOfTrace(trace)).totals).toEqual(cost);
  });

  test("what days and agents have adds up to the total", () => {
    const runs = fc.array(
      fc.record({
        agent: fc.constantFrom("mail", "sheet", "docs"),
        daysAgo: fc.integer({ min: 0, max: 40 }),
        nanoDollars: fc.nat(1_000_000),
      }),
    );
    fc.assert(
      fc.property(runs, fc.constantFrom(7, 30, 90), (drawn, days) => {
        const all = drawn.map(({ agent, daysAgo, nanoDollars }) => run(agent, daysAgo, nanoDollars));
        const selected = selectRuns(all, NOW, days, undefined);
        const total = usageTotal(selected);
        for (const rows of [usageByDay(selected, NOW, days), usageByAgent(selected)]) {
          for (const measure of ["cost", "tokens", "runs"] as const) {
            const sum = rows.reduce((before, row) => before + measureOf(row, measure), 0);
            expect(sum).toBe(measureOf(total, measure));
          }
        }
        expect(new Set(usageByDay(selected, NOW, days).map(({ name }) => name)).size).toBe(days);
      }),
    );
  });

  test("an axis ends at or above its greatest value", () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e15, noNaN: true }), (value) => {
        expect(axisEnd(value)).toBeGreaterThanOrEqual(value);
        expect(axisEnd(value)).toBeLessThanOrEqual(value * 10.1);
      }),
    );
    expect(axisEnd(0)).toBe(1);
    expect(axisEnd(21)).toBe(50);
  });
});
