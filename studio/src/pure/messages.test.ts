import { expect, test } from "vitest";

import type { Json, JsonObject } from "../api/json.ts";
import type { RaisedInterrupt, StateLabels, ThreadState, ThreadTrace } from "../api/types.ts";
import { NOTHING_LIVE } from "./event_fold.ts";
import {
  approvalsOf,
  callFactsOf,
  channelsOf,
  conversationOf,
  decisionOf,
  messageLabels,
  messagesOf,
  modelFactsOf,
} from "./messages.ts";

const human = { type: "human", id: "h", content: "hi" };
const calls = {
  type: "ai",
  id: "a1b2-0",
  content: "",
  tool_calls: [{ id: "c1", name: "look", args: { at: 1 }, type: "tool_call" }],
};
const result = { type: "tool", id: "t", content: "12", tool_call_id: "c1", name: "look", status: "error" };
const final = {
  type: "ai",
  id: "ffff-0",
  content: [
    { type: "text", text: "It is " },
    { type: "text", text: "12." },
  ],
};

function state(values: Json, tasks: unknown[] = []): ThreadState {
  return { values, tasks } as unknown as ThreadState;
}

test("messages are found by their form, in any channel", () => {
  const found = channelsOf(
    state({
      toolMessages: [],
      messageHistory: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "hello" },
      ],
      messages: [human],
      findings: [{ type: "ai", claim: "no content" }],
      notes: ["text"],
      calls: [{ role: "narrator", content: "x" }],
    }),
  );
  expect(found.map(({ name, messages }) => [name, messages.length])).toEqual([
    ["messages", 1],
    ["messageHistory", 2],
  ]);
  expect(found[1]?.messages.map(({ role }) => role)).toEqual(["human", "ai"]);
  expect(channelsOf(undefined)).toEqual([]);
  expect(messagesOf("text")).toBeUndefined();
});

test("messages inside of a subgraph continue those of the graph", () => {
  const inner = state({ messages: [human, calls] });
  const found = channelsOf(state({ messages: [human] }, [{ id: "1", name: "agent", state: inner }]));
  expect(found).toHaveLength(1);
  expect(found[0]?.messages.map(({ id }) => id)).toEqual(["h", "a1b2-0"]);
  const only = channelsOf(state({}, [{ id: "1", name: "agent", state: inner }]));
  expect(only[0]?.subgraph).toBe("agent");
});

test("the same object is read once", () => {
  expect(messagesOf([human], "/messages")?.[0]).toBe(messagesOf([human], "/messages")?.[0]);
  const twice = messagesOf([human, human]);
  expect(twice?.map(({ key }) => key)).toEqual(["h", "#1"]);
});

test("a result is part of the message that made the call, and one without a call stays", () => {
  const lost = { ...result, id: "t2", tool_call_id: "other" };
  const stored = messagesOf([human, calls, result, lost, final]) ?? [];
  const entries = conversationOf(stored, NOTHING_LIVE, true);
  expect(entries.map(({ key }) => key)).toEqual(["h", "a1b2-0", "t2", "ffff-0"]);
  const entry = entries[1];
  expect(entry?.kind === "stored" && entry.results.get("c1")?.isError).toBe(true);
  expect(stored.at(-1)?.text).toBe("It is 12.");
});

const totals = {
  model_calls: 1,
  input_tokens: 1,
  output_tokens: 1,
  nano_dollars: 5,
  calls_of_unknown_cost: 0,
};
function span(
  kind: string,
  at: number,
  attributes: JsonObject,
  spans: unknown[] = [],
  more: JsonObject = {},
) {
  const time = new Date(at * 1000).toISOString();
  return {
    span_id: `${kind}${at}`,
    name: `${kind} ${at}`,
    kind,
    started_at: time,
    ended_at: time,
    duration_ms: 0,
    error: null,
    cost: totals,
    attributes,
    spans,
    ...more,
  };
}
function trace(...runs: unknown[]): ThreadTrace {
  return { thread_id: "t", cost: totals, runs } as unknown as ThreadTrace;
}
const model = (at: number, finish: string) =>
  span("model", at, { "gen_ai.response.finish_reasons": [finish] });
const messages = messagesOf([human, calls, result, final]) ?? [];

test("tool calls are found in the trace by their ids", () => {
  const tool = (at: number) => span("tool", at, { "gen_ai.tool.call.id": "c1" }, [], { tool_class: "keyed" });
  const found = callFactsOf(trace(span("run", 0, {}, [tool(1), tool(5)])));
  expect(found.get("c1")).toMatchObject({ toolClass: "keyed", attempts: 2 });
  expect(callFactsOf(trace(tool(1), tool(5)), 2000).get("c1")?.attempts).toBe(1);
});

test("model calls are matched by their task", () => {
  const node = (task: string, inner: unknown[]) => span("node", 1, { "superstep.task": task }, inner);
  const found = modelFactsOf(
    messages,
    trace(node("ff-ff", [model(2, "stop")]), node("0000", [model(1, "stop")])),
  );
  expect(found.get("ffff-0")?.span.span_id).toBe("model2");
  expect(found.has("a1b2-0")).toBe(false);
});

test("without tasks, model calls are matched in order, or not at all", () => {
  const found = modelFactsOf(messages, trace(span("run", 0, {}, [model(1, "tool_calls"), model(2, "stop")])));
  expect(found.get("a1b2-0")?.span.span_id).toBe("model1");
  expect(found.get("ffff-0")?.span.span_id).toBe("model2");
  const doubtful = modelFactsOf(
    messages,
    trace(span("run", 0, {}, [model(1, "tool_calls"), model(2, "stop"), model(3, "stop")])),
  );
  expect([...doubtful.keys()]).toEqual(["a1b2-0"]);
  const forked = trace(span("run", 0, { "superstep.forked_from": 3 }, [model(1, "tool_calls")]));
  expect(modelFactsOf(messages, forked).size).toBe(0);
});

test("approvals are those of the call, as they were at a time", () => {
  const raised = {
    id: "i",
    asked_at: "2026-01-01T00:00:00Z",
    value: { tool_call_id: "c1" },
    status: "answered",
    answer: [{ type: "accept", args: null }],
    answered_by: "alice",
    answered_at: "2026-01-01T01:00:00Z",
  } as unknown as RaisedInterrupt;
  expect(approvalsOf([raised]).get("c1")).toMatchObject({
    status: "answered",
    decision: "accept",
    by: "alice",
  });
  const before = approvalsOf([raised], Date.parse("2026-01-01T00:30:00Z")).get("c1");
  expect(before).toMatchObject({ status: "open", decision: undefined, by: undefined });
  expect(approvalsOf([raised], 0).size).toBe(0);
  expect(decisionOf({ decisions: [{ type: "approve" }] })).toBe("approve");
  expect(decisionOf(7)).toBeUndefined();
});

test("labels of a part of a message are labels of the message", () => {
  const labels = {
    values: [
      { path: "/messages/1", labels: ["private"] },
      { path: "/messages/1/content", labels: ["untrusted", "private"] },
      { path: "/email", labels: ["secret"] },
    ],
  } as unknown as StateLabels;
  expect([...messageLabels(labels)]).toEqual([["/messages/1", ["private", "untrusted"]]]);
});
