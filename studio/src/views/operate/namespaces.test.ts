import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { fieldFilter, isWithin, type NamespaceNode, namespaceTree } from "./namespaces.ts";

const leaves = (nodes: NamespaceNode[]): string[][] =>
  nodes.flatMap((node) => [node.path, ...leaves(node.children)]);

describe("namespaces", () => {
  test("namespaces above those that have items are there, too", () => {
    const tree = namespaceTree([["users", "bob"], ["facts"], ["users", "ada", "work"]]);
    expect(tree.map(({ name }) => name)).toEqual(["facts", "users"]);
    expect(tree[1]?.children.map(({ name }) => name)).toEqual(["ada", "bob"]);
  });

  test("every path is in the tree once, below its beginnings", () => {
    const part = fc.constantFrom("a", "b", "__proto__", "c d");
    fc.assert(
      fc.property(fc.array(fc.array(part, { minLength: 1, maxLength: 4 })), (paths) => {
        const found = leaves(namespaceTree(paths)).map((path) => JSON.stringify(path));
        expect(new Set(found).size).toBe(found.length);
        for (const path of paths) expect(found).toContain(JSON.stringify(path));
      }),
    );
  });

  test("a path is within itself and what is above it", () => {
    expect(isWithin(["a", "b"], ["a"])).toBe(true);
    expect(isWithin(["a", "b"], [])).toBe(true);
    expect(isWithin(["a"], ["a", "b"])).toBe(false);
  });

  test("values are compared by their type", () => {
    expect(fieldFilter("n", "3")).toEqual({ n: 3 });
    expect(fieldFilter("n", '"3"')).toEqual({ n: "3" });
    expect(fieldFilter("n", "true")).toEqual({ n: true });
    expect(fieldFilter("n", "ada")).toEqual({ n: "ada" });
    expect(fieldFilter("", "ada")).toBeUndefined();
  });
});
