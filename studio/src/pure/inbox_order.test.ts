import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { InboxItem } from "../api/types.ts";
import {
  bulkKey,
  departed,
  groupOf,
  oneLine,
  pageOffsets,
  placed,
  rowsMoved,
  subjectOf,
} from "./inbox_order.ts";

function item(id: string, fields: Partial<InboxItem> = {}, value: unknown = {}): InboxItem {
  return {
    thread_id: `t-${id}`,
    graph_id: "g",
    assistant_id: null,
    run_id: null,
    node: "n",
    checkpoint_ns: "",
    kind: "approval",
    description: null,
    evidence: null,
    asked_at: "",
    age_ms: 0,
    deadline: null,
    on_deadline: "wait",
    is_overdue: false,
    cost: { model_calls: 0, input_tokens: 0, output_tokens: 0, nano_dollars: 0, calls_of_unknown_cost: 0 },
    interrupt: { id, value },
    ...fields,
  };
}

const listOf = (...ids: string[]) => placed([{ offset: 0, items: ids.map((id) => item(id)) }]);

describe("subjects", () => {
  test("say what is asked", () => {
    expect(subjectOf(item("1", {}, { query: "Who\npays?" }))).toBe("Who pays?");
    expect(subjectOf(item("1", { description: "From: a\nSubject: Re: Hi\n\n> **Subject**: Hi" }))).toBe(
      "Re: Hi",
    );
    expect(subjectOf(item("1", { description: "**Subject**: Hello" }))).toBe("Hello");
    expect(subjectOf(item("1", { description: "Not made:\nDELETE /orders/1" }))).toBe("DELETE /orders/1");
    expect(subjectOf(item("1", {}, { action_request: { action: "pay", args: {} } }))).toBe("pay");
    expect(subjectOf(item("1", {}, { a: 1 }))).toBe('{"a":1}');
    expect(subjectOf(item("1", {}, "Why?"))).toBe("Why?");
  });

  test("are one short line, whatever the value is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.option(fc.string()), (value, description) => {
        const subject = subjectOf(item("1", { description }, value));
        expect(subject).not.toMatch(/[\n\r]/);
        expect([...subject].length).toBeLessThanOrEqual(160);
        expect(subject).not.toBe("");
      }),
    );
    expect(oneLine("x".repeat(1_000_000), 10)).toBe("xxxxxxxxx…");
  });
});

test("items of one thread belong together", () => {
  const items = [item("1", { thread_id: "a" }), item("2", { thread_id: "b" }), item("3", { thread_id: "a" })];
  expect(groupOf(items, "a").map(({ interrupt }) => interrupt.id)).toEqual(["1", "3"]);
});

test("identical items have the same graph, node and action", () => {
  const value = { action_request: { action: "pay", args: { cents: 1 } } };
  const other = { action_request: { action: "pay", args: { cents: 2 } } };
  expect(bulkKey(item("1", {}, value))).toBe(bulkKey(item("2", {}, other)));
  expect(bulkKey(item("1", {}, value))).not.toBe(bulkKey(item("2", { node: "m" }, value)));
  expect(bulkKey(item("1", {}, { query: "?" }))).toBeUndefined();
});

describe("a list that changes", () => {
  test("what is read stays in place", () => {
    expect(rowsMoved({ id: "b", place: 1 }, listOf("a", "b"))).toBe(0);
    expect(rowsMoved({ id: "b", place: 1 }, listOf("new", "a", "b"))).toBe(1);
    expect(rowsMoved({ id: "b", place: 1 }, listOf("b"))).toBe(-1);
    expect(rowsMoved({ id: "b", place: 1 }, listOf("a"))).toBe(0);
    expect(rowsMoved(undefined, listOf("a"))).toBe(0);
  });

  test("items that left are named, items that moved away are not", () => {
    const left = (after: ReturnType<typeof listOf>, total: number) =>
      departed(listOf("a", "b"), after, total).map(({ interrupt }) => interrupt.id);
    expect(left(listOf("b"), 1)).toEqual(["a"]);
    expect(left(listOf("a"), 1)).toEqual(["b"]);
    expect(left(listOf("new", "a", "b"), 3)).toEqual([]);
    // The page is not loaded any more.
    expect(left(placed([{ offset: 100, items: [item("z")] }]), 200)).toEqual([]);
  });

  test("an item that moved between two requests is shown once", () => {
    const places = placed([
      { offset: 0, items: [item("a"), item("b")] },
      { offset: 2, items: [item("b"), item("c")] },
    ]);
    expect([...places].map(([place, { interrupt }]) => `${place}${interrupt.id}`)).toEqual([
      "0a",
      "1b",
      "3c",
    ]);
  });
});

test("pages of rows", () => {
  expect(pageOffsets(0, 20, 100)).toEqual([0]);
  expect(pageOffsets(95, 130, 100)).toEqual([0, 100]);
  expect(pageOffsets(9_950, 9_999, 100)).toEqual([9_900]);
});
