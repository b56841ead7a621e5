import { describe, expect, it } from "vitest";

import type { Json } from "../api/json.ts";
import type { Run, TraceSpan, TreeCheckpoint } from "../api/types.ts";
import { fork } from "../text/fork.ts";
import { type BranchRecord, scenarioOf } from "./scenario.ts";

const time = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000+00:00`;
const cost = { model_calls: 0, input_tokens: 0, output_tokens: 0, nano_dollars: 0, calls_of_unknown_cost: 0 };

function span(kind: string, end: number, spans: TraceSpan[], more: Partial<TraceSpan> = {}): TraceSpan {
  return {
    span_id: `${kind}${end}`,
    name: kind,
    kind,
    started_at: time(end),
    ended_at: time(end),
    duration_ms: 0,
    error: null,
    cost,
    attributes: {},
    spans,
    ...more,
  };
}

function model(end: number, reason: string): TraceSpan {
  const attributes = { "gen_ai.response.finish_reasons": [reason] } as unknown as TraceSpan["attributes"];
  return span("model", end, [], { attributes, input_tokens: 10, output_tokens: 2 });
}

function checkpoint(
  id: string,
  second: number,
  step: number,
  more: Partial<TreeCheckpoint> = {},
): TreeCheckpoint {
  return {
    checkpoint_id: id,
    parent_checkpoint_id: null,
    source: "loop",
    step,
    next: [],
    run_id: "run-1",
    created_at: time(second),
    is_on_current_branch: true,
    ...more,
  };
}

function run(id: string, second: number, kwargs: Record<string, Json>): Run {
  return {
    run_id: id,
    thread_id: "t",
    assistant_id: "a",
    created_at: time(second),
    updated_at: time(second),
    status: "success",
    metadata: {},
    kwargs,
    multitask_strategy: "enqueue",
  } as Run;
}

const sends = { type: "ai", content: "", tool_calls: [{ id: "c", name: "send", args: { text: "Hi" } }] };
const says = { type: "ai", content: [{ type: "text", text: "Done." }] };

function record(more: Partial<BranchRecord> = {}): BranchRecord {
  const superstep = (end: number, node: string, calls: TraceSpan[]) =>
    span("superstep", end, [span("node", end, calls, { node })]);
  return {
    thread: "t",
    graph: "mail",
    isWhole: true,
    hasFiles: false,
    values: { done: true },
    runs: [
      run("run-1", 1, { input: { text: "hello" }, command: null }),
      run("run-2", 4, { input: null, command: { resume: { type: "accept" } } }),
      run("run-3", 9, { input: null, command: { resume: "of another branch" } }),
    ],
    trace: {
      thread_id: "t",
      cost,
      runs: [
        span("run", 8, [
          superstep(3, "plan", [model(3, "tool_calls")]),
          superstep(6, "act", [model(6, "stop")]),
        ]),
      ],
    },
    steps: [
      { checkpoint: checkpoint("0", 2, -1, { source: "input" }), changes: [] },
      { checkpoint: checkpoint("1", 2, 0), changes: [{ path: "/text", after: "hello" }] },
      { checkpoint: checkpoint("2", 3, 1), changes: [{ path: "/messages/0", after: sends }] },
      { checkpoint: checkpoint("3", 6, 2), changes: [{ path: "/messages", before: [], after: [says] }] },
      { checkpoint: checkpoint("4", 10, 3, { source: "fork" }), changes: [] },
    ],
    ...more,
  };
}

describe("a scripted case", () => {
  it("has the inputs, the answers of the branch, and the replies by node", () => {
    const made = scenarioOf(record());
    expect(made.inputs).toEqual([{ text: "hello" }]);
    expect(made.answers).toEqual([{ type: "accept" }]);
    expect(made.script.replies).toEqual([
      {
        at: "plan",
        text: "",
        tool_calls: [{ name: "send", args: { text: "Hi" } }],
        usage: { input_tokens: 10, output_tokens: 2 },
      },
      { at: "act", text: "Done.", usage: { input_tokens: 10, output_tokens: 2 } },
    ]);
    expect(made.not_recovered).toEqual([fork.lost.label]);
  });

  it("says which replies are not in the log", () => {
    const steps = record().steps.map((step) => ({ ...step, changes: [] }));
    const made = scenarioOf(record({ steps }));
    expect(made.script.replies.map(({ text }) => text)).toEqual(["", ""]);
    expect(made.not_recovered).toContain(fork.lost.reply(0, "plan"));
    expect(made.not_recovered).toContain(fork.lost.reply(1, "act"));
  });

  it("says that inputs, edits and files are missing", () => {
    const edited = { checkpoint: checkpoint("5", 11, 4, { source: "update", next: ["act"] }), changes: [] };
    const made = scenarioOf(
      record({ runs: [], hasFiles: true, isWhole: false, steps: [...record().steps, edited] }),
    );
    expect(made.not_recovered).toEqual([
      fork.lost.label,
      fork.lost.cut,
      fork.lost.files,
      fork.lost.open,
      fork.lost.edit(4),
      fork.lost.input(-1),
    ]);
  });
});
