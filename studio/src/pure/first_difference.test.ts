import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { Json } from "../api/json.ts";
import { areSameQuestions, firstDifference, realChanges } from "./first_difference.ts";

describe("real changes", () => {
  it("drops items that have another id and the same content", () => {
    const message = (id: string, content: string) => ({
      id,
      content,
      tool_calls: [{ id: `call-${id}`, name: "x" }],
    });
    const changes = [
      { path: "/messages/1", before: message("a", "Hello"), id: "a" },
      { path: "/messages/1", after: message("b", "Hello"), id: "b" },
      { path: "/messages/2", after: message("c", "Bye"), id: "c" },
    ];
    expect(realChanges(changes)).toEqual([changes[2]]);
  });

  it("keeps as many as there are more of", () => {
    const item = (id: string) => ({ id, content: "again" });
    const changes = [
      { path: "/list/0", before: item("a") },
      { path: "/list/0", after: item("b") },
      { path: "/list/1", after: item("c") },
    ];
    expect(realChanges(changes)).toEqual([changes[2]]);
  });

  it("drops a changed id and keeps a changed value", () => {
    const changes = [
      { path: "/entity/id", before: 1, after: 2 },
      { path: "/spent", before: 1, after: 2 },
    ];
    expect(realChanges(changes)).toEqual([changes[1]]);
  });
});

describe("first difference", () => {
  it("is found by its pointer", () => {
    expect(firstDifference({ a: [1, { "b/c": 2 }] }, { a: [1, { "b/c": 3 }] })).toEqual({
      path: "/a/1/b~1c",
      before: 2,
      after: 3,
    });
    expect(firstDifference({ a: 1 }, { a: 1, b: null })).toEqual({ path: "/b", after: null });
    expect(firstDifference([1], { 0: 1 })).toEqual({ path: "", before: [1], after: { 0: 1 } });
  });

  it("is none for the same values, and none for other ids", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => firstDifference(value as Json, value as Json) === undefined),
    );
    expect(firstDifference([{ id: "a", x: 1 }], [{ id: "b", x: 1 }])).toBeUndefined();
  });

  it("is found wherever the texts of two values differ", () => {
    const value = fc.dictionary(
      fc.constantFrom("a", "b", "c"),
      fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 3 }),
    );
    fc.assert(
      fc.property(value, value, (left, right) => {
        const sorted = (one: object) => JSON.stringify(Object.entries(one).sort());
        expect(firstDifference(left, right) === undefined).toBe(sorted(left) === sorted(right));
      }),
    );
  });
});

describe("questions", () => {
  const approval = (action: string, args: Json) => ({
    value: { action_request: { action, args }, config: {} },
  });

  it("are the same if one answer fits both", () => {
    expect(
      areSameQuestions([approval("send", { text: "a" })], [approval("send", { text: "b" })], false),
    ).toBe(true);
    expect(areSameQuestions([{ value: "How many?" }], [{ value: "How much?" }], false)).toBe(true);
  });

  it("are others if the action, the form or the number is another", () => {
    expect(areSameQuestions([approval("send", {})], [approval("pay", {})], false)).toBe(false);
    expect(areSameQuestions([approval("send", {})], [{ value: "How many?" }], false)).toBe(false);
    expect(areSameQuestions([{ value: "a" }], [], false)).toBe(false);
  });

  it("are the same in every word if the answer lets something happen", () => {
    const asked = (text: string, id: string) => ({
      value: { ...approval("send", { text }).value, tool_call_id: id },
    });
    expect(areSameQuestions([asked("a", "call_1")], [asked("a", "call_2")], true)).toBe(true);
    expect(areSameQuestions([asked("a", "call_1")], [asked("b", "call_1")], true)).toBe(false);
    expect(areSameQuestions([asked("a", "call_1")], [asked("b", "call_1")], false)).toBe(true);
  });
});
