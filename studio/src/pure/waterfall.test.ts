import fc from "fast-check";
import { expect, test } from "vitest";

import type { Run, TraceSpan } from "../api/types.ts";
import {
  axisOf,
  collapsedAtFirst,
  highlightsOf,
  placeOf,
  rowsOf,
  tokensOf,
  traceUntil,
  withQueueWaits,
} from "./waterfall.ts";

const base = Date.parse("2026-01-01T00:00:00.000Z");
const at = (ms: number) => new Date(base + ms).toISOString();
let count = 0;

function span(
  kind: string,
  from: number,
  to: number | null,
  spans: TraceSpan[] = [],
  more: Partial<TraceSpan> = {},
): TraceSpan {
  const cost = {
    model_calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    nano_dollars: 0,
    calls_of_unknown_cost: 0,
  };
  if (kind === "model") Object.assign(cost, { model_calls: 1, nano_dollars: more.nano_dollars ?? 0 });
  for (const inner of spans) {
    cost.model_calls += inner.cost.model_calls;
    cost.nano_dollars += inner.cost.nano_dollars;
  }
  return {
    span_id: `s${count++}`,
    name: kind,
    kind,
    started_at: at(from),
    ended_at: to === null ? null : at(to),
    duration_ms: to === null ? null : to - from,
    error: null,
    cost,
    attributes: {},
    spans,
    ...more,
  };
}

const HOUR = 3_600_000;

/** A run that worked a second, waited an hour for a person, and worked another second. */
function waited() {
  const model = span("model", 0, 1000, [], { nano_dollars: 7 });
  const ask = span("superstep", 0, 1000, [span("node", 0, 1000, [model])]);
  const wait = span("wait", 1000, HOUR);
  const pay = span("superstep", 1000, HOUR + 1000, [
    span("node", 1000, HOUR + 1000, [span("tool", HOUR, HOUR + 1000)]),
    wait,
  ]);
  return { run: span("run", 0, HOUR + 1000, [ask, pay]), ask, pay, wait, model };
}

test("rows are the tree in order, with levels and places", () => {
  const { run, ask, pay } = waited();
  const rows = rowsOf([run], new Set());
  expect(rows.map(({ span: { kind }, level, place, siblings }) => [kind, level, place, siblings])).toEqual([
    ["run", 1, 1, 1],
    ["superstep", 2, 1, 2],
    ["node", 3, 1, 1],
    ["model", 4, 1, 1],
    ["superstep", 2, 2, 2],
    ["node", 3, 1, 2],
    ["tool", 4, 1, 1],
    ["wait", 3, 2, 2],
  ]);
  expect(rows[7]?.parent).toBe(4);
  const closed = rowsOf([run], new Set([ask.span_id, pay.span_id]));
  expect(closed.map(({ isExpanded }) => isExpanded)).toEqual([true, false, false]);
});

test("a filter keeps what matches and the way to it", () => {
  const { run } = waited();
  const rows = rowsOf([run], new Set(), "model");
  expect(rows.map(({ span: { kind } }) => kind)).toEqual(["run", "superstep", "node", "model"]);
  expect(rowsOf([run], new Set(), "error")).toEqual([]);
});

test("an hour of waiting is short on a compressed axis, and long on the other", () => {
  const { run } = waited();
  const compressed = axisOf([run], base, true);
  const gap = compressed.parts.find(({ isCompressed }) => isCompressed);
  expect([gap?.from, gap?.to]).toEqual([base + 1000, base + HOUR]);
  expect((gap?.end ?? 0) - (gap?.start ?? 0)).toBeLessThan(0.05);
  expect(placeOf(compressed, base + 1000)).toBeGreaterThan(0.45);
  expect(placeOf(axisOf([run], base, false), base + 1000)).toBeLessThan(0.001);
});

test("time between runs is compressed, work in a wait is not", () => {
  const one = span("run", 0, 1000, [span("tool", 0, 1000)]);
  const two = span("run", HOUR, HOUR + 1000, [
    span("wait", HOUR, HOUR + 1000),
    span("tool", HOUR, HOUR + 1000),
  ]);
  const gaps = axisOf([one, two], base, true).parts.filter(({ isCompressed }) => isCompressed);
  expect(gaps.map(({ from, to }) => [from - base, to - base])).toEqual([[1000, HOUR]]);
});

const spans = fc
  .array(
    fc.tuple(
      fc.constantFrom("run", "wait", "tool", "model", "node"),
      fc.nat({ max: 1e7 }),
      fc.nat({ max: 1e6 }),
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map((all) => all.map(([kind, from, length]) => span(kind, from, from + length)));

test("an axis keeps the order of times, and goes from 0 to 1", () => {
  fc.assert(
    fc.property(
      spans,
      fc.boolean(),
      fc.array(fc.nat({ max: 12_000_000 }), { minLength: 2 }),
      (roots, isCompressed, times) => {
        const axis = axisOf(roots, base, isCompressed);
        const places = times.toSorted((one, other) => one - other).map((time) => placeOf(axis, base + time));
        for (const [index, place] of places.entries()) {
          expect(place).toBeGreaterThanOrEqual(0);
          expect(place).toBeLessThanOrEqual(1 + 1e-9);
          expect(place).toBeGreaterThanOrEqual((places[index - 1] ?? 0) - 1e-9);
        }
        expect(placeOf(axis, axis.from)).toBe(0);
        expect(placeOf(axis, axis.to)).toBeCloseTo(1);
      },
    ),
  );
});

test("at a checkpoint, what came later is not there, and its cost is not counted", () => {
  const { run, ask, model } = waited();
  const [cut] = traceUntil([run], base + 1000);
  expect(cut?.spans.map(({ span_id }) => span_id)).toEqual([ask.span_id]);
  expect(cut).toMatchObject({ ended_at: null, cost: { model_calls: 1, nano_dollars: 7 } });
  // A call that was not over then had no cost yet.
  expect(traceUntil([run], base + 500)[0]?.cost.model_calls).toBe(0);
  expect(traceUntil([run], base - 1)).toEqual([]);
  expect(traceUntil([run], base + 2 * HOUR)[0]).toBe(run);
  expect(tokensOf(model)).toEqual({ input: undefined, output: undefined });
});

test("runs that waited in the queue have a row for it", () => {
  const run = span("run", 5000, 6000, [], { run_id: "r" });
  const rows = withQueueWaits([run], [{ run_id: "r", created_at: at(0) } as Run]);
  expect(rows.map(({ kind, duration_ms }) => [kind, duration_ms])).toEqual([
    ["queue", 5000],
    ["run", 1000],
  ]);
  expect(withQueueWaits([run], [{ run_id: "r", created_at: at(4990) } as Run])).toEqual([run]);
  expect(withQueueWaits([run], undefined)).toEqual([run]);
});

test("the slow and the expensive are those that matter, and never a wait", () => {
  const calls = [3000, 200, 150, 150, 100].map((ms, index) =>
    span("model", 0, ms, [], { nano_dollars: index === 1 ? 900 : 10 }),
  );
  const wait = span("wait", 0, HOUR);
  const { slow, expensive } = highlightsOf([span("run", 0, HOUR, [...calls, wait])]);
  expect([...slow]).toEqual([calls[0]?.span_id]);
  expect([...expensive]).toEqual([calls[1]?.span_id]);
  expect(highlightsOf(calls.slice(0, 2)).slow.size).toBe(0);
});

test("20,000 spans are laid out in time", () => {
  const steps = Array.from({ length: 5000 }, (_, step) => {
    const from = step * 10;
    return span("superstep", from, from + 10, [
      span("node", from, from + 10, [
        span("model", from, from + 5, [], { nano_dollars: 1 }),
        span("tool", from + 5, from + 9),
      ]),
    ]);
  });
  const run = span("run", 0, 50_000, steps);
  const began = performance.now();
  expect(rowsOf([run], new Set())).toHaveLength(20_001);
  const collapsed = collapsedAtFirst([run]);
  expect(rowsOf([run], collapsed)).toHaveLength(5001);
  const axis = axisOf([run], base, true);
  for (const step of steps) placeOf(axis, Date.parse(step.started_at));
  highlightsOf([run]);
  expect(performance.now() - began).toBeLessThan(1500);
});
