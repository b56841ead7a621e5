import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { CheckpointTree, ThreadTrace } from "../api/types.ts";
import {
  branchOf,
  columnsOf,
  eventsOf,
  nearestPlace,
  pathOf,
  placeForKey,
  positionsOf,
  timelineOf,
} from "./timeline.ts";

const NO_EVENTS = { interrupts: [], failures: [] };
const time = (second: number) => new Date(1_700_000_000_000 + second * 1000).toISOString();

/** A tree of checkpoints `[id, parent, run, second]`, the oldest first. */
function treeOf(rows: [string, string | null, string, number][], current: string): CheckpointTree {
  const path = new Set<string>();
  const parents = new Map(rows.map(([id, parent]) => [id, parent]));
  for (let id: string | null | undefined = current; id; id = parents.get(id)) path.add(id);
  return {
    thread_id: "t",
    current,
    checkpoints: rows.toReversed().map(([id, parent, run, second], at) => ({
      checkpoint_id: id,
      parent_checkpoint_id: parent,
      source: "loop",
      step: rows.length - at,
      next: [],
      run_id: run,
      created_at: time(second),
      is_on_current_branch: path.has(id),
    })),
    branches: [],
    is_complete: true,
  };
}

const forked = treeOf(
  [
    ["a", null, "r1", 0],
    ["b", "a", "r1", 1],
    ["c", "b", "r1", 2],
    ["d", "b", "r2", 10],
    ["e", "d", "r2", 12],
  ],
  "e",
);
const ids = (tree: CheckpointTree, at?: string) => branchOf(tree, at).map((each) => each.checkpoint_id);

describe("branches", () => {
  it("are the current one, or the one of the checkpoint", () => {
    expect(ids(forked)).toEqual(["a", "b", "d", "e"]);
    expect(ids(forked, "b")).toEqual(["a", "b", "d", "e"]);
    expect(ids(forked, "c")).toEqual(["a", "b", "c"]);
    expect(ids(forked, "unknown")).toEqual(["a", "b", "d", "e"]);
  });

  it("know the checkpoints of others by where they left", () => {
    expect(timelineOf(forked, undefined, NO_EVENTS).others).toMatchObject([{ from: 1, distance: 1 }]);
    expect(timelineOf(forked, "c", NO_EVENTS).others).toMatchObject([
      { from: 1, distance: 1 },
      { from: 1, distance: 2 },
    ]);
  });
});

describe("marks", () => {
  it("of one branch show nothing of another", () => {
    const events = { interrupts: [Date.parse(time(5)), Date.parse(time(11))], failures: [] };
    const waits = (at?: string) => timelineOf(forked, at, events).marks.map((mark) => mark.hasInterrupt);
    expect(waits()).toEqual([false, false, true, false]);
    expect(waits("c")).toEqual([false, false, true]);
  });

  it("show where runs begin", () => {
    const { marks } = timelineOf(forked, undefined, NO_EVENTS);
    expect(marks.map((mark) => mark.isRunStart)).toEqual([true, false, true, false]);
  });

  it("show waits and failures at the checkpoint before them", () => {
    const events = { interrupts: [Date.parse(time(1.5))], failures: [Date.parse(time(99)), 0] };
    const { marks } = timelineOf(forked, undefined, events);
    expect(marks.map((mark) => mark.hasInterrupt)).toEqual([false, true, false, false]);
    expect(marks.map((mark) => mark.hasFailure)).toEqual([true, false, false, true]);
  });

  it("take events from interrupts and the trace", () => {
    const cost = {
      model_calls: 0,
      input_tokens: 0,
      output_tokens: 0,
      nano_dollars: 0,
      calls_of_unknown_cost: 0,
    };
    const span = { span_id: "", name: "", duration_ms: 0, cost, attributes: {}, spans: [] };
    const trace: ThreadTrace = {
      thread_id: "t",
      cost,
      is_complete: true,
      runs: [
        {
          ...span,
          kind: "run",
          started_at: time(0),
          ended_at: null,
          error: null,
          spans: [
            { ...span, kind: "wait", started_at: time(3), ended_at: null, error: null },
            { ...span, kind: "superstep", started_at: time(4), ended_at: time(5), error: "boom" },
          ],
        },
      ],
    };
    expect(eventsOf(undefined, trace)).toEqual({
      interrupts: [Date.parse(time(3))],
      failures: [Date.parse(time(5))],
    });
  });
});

describe("positions", () => {
  const line = timelineOf(forked, undefined, NO_EVENTS);

  it("are by step or by time", () => {
    expect([...positionsOf(line, "step")]).toEqual([0, 1 / 3, 2 / 3, 1]);
    expect([...positionsOf(line, "time")]).toEqual([0, 1 / 12, 10 / 12, 1]);
  });

  it("are found again, and rise", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1000), { minLength: 1, maxLength: 60 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (seconds, x) => {
          const rows = seconds.map((second, at): [string, string | null, string, number] => [
            `${at}`,
            at ? `${at - 1}` : null,
            "r",
            second,
          ]);
          const timeline = timelineOf(treeOf(rows, `${seconds.length - 1}`), undefined, NO_EVENTS);
          for (const scale of ["step", "time"] as const) {
            const positions = positionsOf(timeline, scale);
            expect([...positions]).toEqual([...positions].sort((a, b) => a - b));
            const place = nearestPlace(positions, x);
            const best = Math.min(...[...positions].map((position) => Math.abs(position - x)));
            expect(Math.abs((positions[place] ?? 9) - x)).toBeCloseTo(best, 10);
          }
        },
      ),
    );
  });

  it("are drawn once per pixel", () => {
    const rows = Array.from({ length: 10_000 }, (_, at): [string, string | null, string, number] => [
      `${at}`,
      at ? `${at - 1}` : null,
      `r${Math.floor(at / 100)}`,
      at,
    ]);
    const timeline = timelineOf(treeOf(rows, "9999"), undefined, NO_EVENTS);
    const columns = columnsOf(timeline, "step", 500);
    expect(columns.plain).toHaveLength(500);
    expect(columns.runs).toHaveLength(100);
    expect(pathOf([0.5, 3.5], 2, 8)).toBe("M0.5 2v8M3.5 2v8");
  });
});

describe("keys", () => {
  it("move and stay inside", () => {
    expect(placeForKey("ArrowRight", 3, 5, false)).toBe(4);
    expect(placeForKey("ArrowRight", 4, 5, false)).toBe(4);
    expect(placeForKey("ArrowRight", 3, 5, true)).toBe(2);
    expect(placeForKey("Home", 3, 5, false)).toBe(0);
    expect(placeForKey("End", 0, 5, false)).toBe(4);
    expect(placeForKey("PageUp", 0, 1000, false)).toBe(50);
    expect(placeForKey("x", 0, 5, false)).toBeUndefined();
    expect(placeForKey("toString", 0, 5, false)).toBeUndefined();
  });
});
