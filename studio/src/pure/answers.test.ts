import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { Json } from "../api/json.ts";
import type { InboxItem } from "../api/types.ts";
import { type AnswerPart, type AnswerWay, answerForm, changesBetween } from "./answers.ts";
import { isSameAnswer } from "./json_equal.ts";
import { problemsOf } from "./schema_form.ts";

export function itemOf(value: unknown, extra: { kind?: string; schema?: unknown } = {}): InboxItem {
  return {
    thread_id: "t",
    graph_id: "g",
    assistant_id: null,
    run_id: null,
    node: "n",
    checkpoint_ns: "",
    kind: extra.kind ?? "approval",
    description: null,
    evidence: null,
    asked_at: "2026-01-01T00:00:00Z",
    age_ms: 0,
    deadline: null,
    on_deadline: "wait",
    is_overdue: false,
    cost: { model_calls: 0, input_tokens: 0, output_tokens: 0, nano_dollars: 0, calls_of_unknown_cost: 0 },
    interrupt: { id: "i", value, ...(extra.schema !== undefined && { response_schema: extra.schema }) },
  };
}

const all = { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true };
const refund = { action_request: { action: "refund", args: { cents: 900, to: "Ada" } }, config: all };

function partOf(item: InboxItem): AnswerPart {
  const [part] = answerForm(item).parts;
  if (!part) throw new Error("no part");
  return part;
}

function wayOf(item: InboxItem, id: AnswerWay["id"]): AnswerWay {
  const way = partOf(item).ways.find((each) => each.id === id);
  if (!way) throw new Error(`no ${id}`);
  return way;
}

function answer(item: InboxItem, id: AnswerWay["id"], entered?: Json): Json {
  return answerForm(item).join([wayOf(item, id).make(entered)]);
}

const ids = (item: InboxItem) => partOf(item).ways.map(({ id }) => id);

describe("decisions about an action", () => {
  test("four answers, in the form of Agent Inbox", () => {
    const item = itemOf(refund);
    expect(ids(item)).toEqual(["accept", "edit", "response", "ignore"]);
    expect(answer(item, "accept")).toEqual([{ type: "accept" }]);
    expect(answer(item, "response", "No.")).toEqual([{ type: "response", args: "No." }]);
    expect(answer(item, "ignore")).toEqual([{ type: "ignore" }]);
    expect(answer(item, "edit", { cents: 450, to: "Ada" })).toEqual([
      { type: "edit", args: { action: "refund", args: { cents: 450, to: "Ada" } } },
    ]);
  });

  test("only what is allowed", () => {
    const config = { allow_accept: true, allow_ignore: "yes" };
    expect(ids(itemOf({ ...refund, config }))).toEqual(["accept"]);
  });

  test("an edited number must stay a number", () => {
    const { schema } = wayOf(itemOf(refund), "edit");
    expect(problemsOf(schema, { cents: "many", to: "Ada" })).toEqual([{ path: "/cents", code: "number" }]);
    expect(problemsOf(schema, { cents: 1, to: "Ada" })).toEqual([]);
  });

  test("only answers that let something happen have an effect", () => {
    const effects = partOf(itemOf(refund)).ways.filter(({ hasEffect }) => hasEffect);
    expect(effects.map(({ id }) => id)).toEqual(["accept", "edit"]);
  });

  test("a list of requests has a decision for each", () => {
    const form = answerForm(itemOf([refund, refund]));
    expect(form.parts).toHaveLength(2);
    expect(form.join([{ type: "accept" }, { type: "ignore" }])).toEqual([
      { type: "accept" },
      { type: "ignore" },
    ]);
  });

  test("requests of LangChain's middleware get decisions", () => {
    const item = itemOf({
      action_requests: [{ name: "pay", args: { cents: 1 } }],
      review_configs: [{ action_name: "pay", allowed_decisions: ["approve", "reject"] }],
    });
    expect(ids(item)).toEqual(["accept", "response", "ignore"]);
    expect(answer(item, "accept")).toEqual({ decisions: [{ type: "approve" }] });
    expect(answer(item, "response", "no")).toEqual({ decisions: [{ type: "reject", message: "no" }] });
  });

  test("a question of a tool's server is answered with its form", () => {
    const form = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const item = itemOf(
      { ...refund, form, config: { allow_respond: true, allow_ignore: true } },
      { kind: "elicitation" },
    );
    expect(wayOf(item, "response").schema).toEqual(form);
    expect(answer(item, "response", { city: "Rome" })).toEqual([
      { type: "response", args: { city: "Rome" } },
    ]);
    expect(wayOf(item, "response").hasEffect).toBe(true);
  });

  test("a call of unknown outcome", () => {
    const item = itemOf({ ...refund, config: { allow_respond: true } }, { kind: "outcome_unknown" });
    expect(ids(item)).toEqual(["happened", "call", "result"]);
    expect(answer(item, "result", "paid")).toEqual([{ type: "result", result: "paid" }]);
  });
});

describe("answers by schema", () => {
  const verdict = (types: string[], properties: object) => ({
    type: "object",
    properties: { type: { enum: types }, ...properties },
    required: ["type"],
    additionalProperties: false,
  });

  test("a change set: the changes belong to the edit", () => {
    const schema = verdict(["accept", "reject", "edit"], {
      reject: { type: "array", items: { type: "string" } },
    });
    const item = itemOf({ summary: "Changes" }, { schema });
    expect(ids(item)).toEqual(["accept", "reject", "edit"]);
    expect(answer(item, "accept")).toEqual({ type: "accept" });
    expect(answer(item, "edit", { reject: ["A!1"] })).toEqual({ type: "edit", reject: ["A!1"] });
    expect(problemsOf(wayOf(item, "edit").schema, { reject: ["A!1"] })).toEqual([]);
  });

  test("a gate: the changes come with the acceptance", () => {
    const schema = verdict(["accept", "skip"], { add: { type: "array", items: { type: "string" } } });
    const item = itemOf({}, { schema, kind: "gate" });
    expect(ids(item)).toEqual(["accept", "change", "skip"]);
    expect(answer(item, "change", { add: ["Why?"] })).toEqual({ type: "accept", add: ["Why?"] });
  });

  test("a budget: a raise needs an amount and proposes one", () => {
    const schema = verdict(["raise", "stop"], { by: { type: "integer", minimum: 20 } });
    const item = itemOf({ limit: 100, short_by: 20 }, { schema, kind: "budget" });
    const raise = wayOf(item, "raise");
    expect(raise.initial).toEqual({ by: 100 });
    expect(problemsOf(raise.schema, {})).toEqual([{ path: "/by", code: "required" }]);
    expect(answer(item, "raise", { by: 50 })).toEqual({ type: "raise", by: 50 });
  });

  test("answers that the page has no words for are entered with a form", () => {
    expect(ids(itemOf({}, { schema: verdict(["accept", "explode"], {}) }))).toEqual(["answer"]);
    expect(ids(itemOf({}, { schema: { type: "string", enum: ["now", "stop"] } }))).toEqual(["answer"]);
  });

  test("text, and without a schema text or JSON", () => {
    const asked = itemOf({ query: "Why?" }, { schema: { type: "string", minLength: 1 } });
    expect(wayOf(asked, "answer").input).toBe("text");
    expect(answer(asked, "answer", "So.")).toBe("So.");
    expect(problemsOf(wayOf(asked, "answer").schema, "")).toHaveLength(1);
    expect(ids(itemOf("Why?"))).toEqual(["answer", "json"]);
    expect(answer(itemOf("Why?"), "json", { a: 1 })).toEqual({ a: 1 });
  });

  test("no value and no schema make it fail", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.option(fc.object()), (value, schema) => {
        const { parts } = answerForm(itemOf(value, { schema: schema ?? undefined }));
        expect(parts.length).toBeGreaterThan(0);
      }),
    );
  });
});

describe("changes", () => {
  test("name what differs, with the types of both", () => {
    expect(
      changesBetween({ a: 1, b: { c: "x" }, d: [1, 2] }, { a: "1", b: { c: "x" }, d: [1], e: null }),
    ).toEqual([
      { path: "/a", before: 1, after: "1" },
      { path: "/d/1", before: 2 },
      { path: "/e", after: null },
    ]);
  });

  test("the same has none, something else has some", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const [a, b] = [one as Json, other as Json];
        expect(changesBetween(a, structuredClone(a))).toEqual([]);
        const isEqual = JSON.stringify(a) === JSON.stringify(b);
        if (isEqual) expect(changesBetween(a, b)).toEqual([]);
      }),
    );
  });
});

test("an answer is recognized in the form in which the server stores it", () => {
  expect(isSameAnswer([{ type: "accept" }], { type: "accept", args: null })).toBe(true);
  expect(isSameAnswer([{ type: "accept" }], { type: "ignore", args: null })).toBe(false);
  expect(isSameAnswer("yes", "yes")).toBe(true);
});
