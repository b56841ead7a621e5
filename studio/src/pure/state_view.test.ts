import { expect, it } from "vitest";

import type { StateLabels, ThreadState } from "../api/types.ts";
import { valueAt } from "./json_tree.ts";
import { weightOf } from "./json_weight.ts";
import { changedPointers, labeledInside, labelsByPointer, openSubgraphs } from "./state_view.ts";

it("marks what was written, not what was removed or is elsewhere", () => {
  const values = { a: 1, list: [{ id: "x" }] };
  const changes = [
    { path: "/a", before: 0, after: 1 },
    { path: "/gone", before: 0 },
    { path: "/list/0", after: {}, id: "x" },
    { path: "/a", after: 1, subgraph: "inner" },
    { path: "/list/7", after: 1 },
  ];
  expect([...changedPointers(changes, values)]).toEqual(["/a", "/list/0"]);
});

it("shows labels where the value is visible", () => {
  const state = { note: "secret", messages: [{ id: "m" }] };
  const origin = { by: "node" as const, node: "n", checkpoint_id: "c", at: "" };
  const found: StateLabels = {
    thread_id: "t",
    checkpoint_id: "c",
    declassified: [],
    values: [
      { path: "/note/value", id: null, labels: ["private"], origin },
      { path: "/note", id: null, labels: ["private", "untrusted"], origin: null },
      { path: "/messages/0", id: "m", labels: ["untrusted"], origin },
    ],
  };
  const marks = labelsByPointer(found, (at) => valueAt(state, at) !== undefined);
  expect([...marks.labels]).toEqual([
    ["/note", ["private", "untrusted"]],
    ["/messages/0", ["untrusted"]],
  ]);
  expect(labeledInside(marks, "/messages")).toMatchObject({ here: [], inside: [{ path: "/messages/0" }] });
  expect(labeledInside(marks, "/note").here).toHaveLength(2);
});

it("finds the states of subgraphs", () => {
  const state = (tasks: ThreadState["tasks"], values: unknown): ThreadState =>
    ({ values, tasks, next: [], interrupts: [] }) as unknown as ThreadState;
  const task = (name: string, inner: ThreadState | null) => ({ id: name, name, state: inner });
  const inner = state([task("deep", state([], { n: 2 }))], { n: 1 });
  const found = openSubgraphs(state([task("a", inner), task("b", null), task("a", state([], { n: 3 }))], {}));
  expect(found).toEqual([
    { name: "a", values: { n: 1 } },
    { name: "a/deep", values: { n: 2 } },
    { name: "a #2", values: { n: 3 } },
  ]);
});

it("weighs a value up to a limit", () => {
  expect(weightOf({ a: "1234" }, 100)).toBe(13);
  expect(
    weightOf(
      Array.from({ length: 100_000 }, () => "text"),
      500,
    ),
  ).toBeLessThan(600);
});
