import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { Json } from "../api/json.ts";
import {
  childPointer,
  containersOf,
  pointerParts,
  pointersAround,
  previewOf,
  rowsAround,
  searchTree,
  treeRows,
  valueAt,
  valueRowId,
  visibleText,
} from "./json_tree.ts";

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;

/** All pointers into a value, found another way. */
function pointersOf(value: Json, pointer = ""): string[] {
  if (typeof value !== "object" || value === null) return [pointer];
  const names = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [pointer, ...names.flatMap((name) => pointersOf(Object(value)[name], childPointer(pointer, name)))];
}

describe("pointers", () => {
  it("are split as they were joined", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (parts) => {
        const pointer = parts.reduce((sofar, part) => childPointer(sofar, part), "");
        expect(pointerParts(pointer)).toEqual(parts);
        expect(pointersAround(pointer)).toHaveLength(parts.length);
      }),
    );
  });

  it("lead to every value", () => {
    fc.assert(
      fc.property(json, (value) => {
        for (const pointer of pointersOf(value)) expect(valueAt(value, pointer)).toBeDefined();
      }),
    );
    expect(valueAt({ a: 1 }, "/toString")).toBeUndefined();
  });
});

describe("rows", () => {
  it("are only the root if nothing is open", () => {
    const rows = treeRows({ a: [1, 2] }, new Set());
    expect(rows).toMatchObject([{ pointer: "", count: 1, isOpen: false, depth: 0 }]);
  });

  it("contain what was opened for it, each once, inside of an earlier row", () => {
    fc.assert(
      fc.property(json, (value) => {
        const all = pointersOf(value);
        const rows = treeRows(value, rowsAround(value, all));
        const ids = new Set<string>();
        for (const row of rows) {
          expect(ids.has(row.id)).toBe(false);
          if (row.parent !== undefined) expect(ids.has(row.parent)).toBe(true);
          expect(row.position).toBeLessThanOrEqual(row.siblings);
          ids.add(row.id);
        }
        const shown = rows.flatMap((row) => (row.kind === "value" ? [row.pointer] : []));
        expect(shown).toEqual(all);
      }),
    );
  });

  it("show a long list in pages, and only the page that is needed", () => {
    const value: Json = { list: Array.from({ length: 250_000 }, (_, at) => at) };
    const open = rowsAround(value, ["/list/123456"]);
    const rows = treeRows(value, open);
    expect(rows.length).toBeLessThan(400);
    expect(rows).toContainEqual(expect.objectContaining({ pointer: "/list/123456", value: 123456 }));
    expect(rows).toContainEqual(
      expect.objectContaining({ kind: "page", first: 123400, end: 123500, isOpen: true }),
    );
    expect(rows[1]).toMatchObject({ kind: "value", name: "list", count: 250_000 });
  });

  it("find fields of large objects in their page", () => {
    const value: Json = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`f${at}`, at]));
    const rows = treeRows(value, rowsAround(value, ["/f777"]));
    expect(rows).toContainEqual(expect.objectContaining({ pointer: "/f777", value: 777 }));
    expect(rows).toHaveLength(1 + 10 + 100);
  });

  it("ignore pointers that lead nowhere", () => {
    expect([...rowsAround({ a: 1 }, ["/b/c", "/a/b"])]).toEqual([valueRowId("")]);
  });
});

describe("search", () => {
  it("finds names and values in the order of the tree", () => {
    const value: Json = { Name: "x", list: [{ text: "my NAME" }, "other"], n: 5 };
    expect(searchTree(value, "name").found).toEqual(["/Name", "/list/0/text"]);
    expect(searchTree(value, "5").found).toEqual(["/n"]);
    expect(searchTree(value, " ").found).toEqual([]);
    expect(searchTree(["a", "a", "a"], "a", 2)).toEqual({ found: ["/0", "/1"], isCut: true });
  });
});

describe("texts", () => {
  it("preview the beginning", () => {
    expect(previewOf({ a: 1, b: ["x", null] })).toBe('{a: 1, b: ["x", null]}');
    expect(previewOf("a".repeat(1000), 10)).toHaveLength(11);
    fc.assert(
      fc.property(json, fc.nat(50), (value, length) => {
        expect(previewOf(value, length).length).toBeLessThanOrEqual(length + 1);
      }),
    );
  });

  it("show what cannot be seen", () => {
    expect(visibleText("a\u202Eb\u200B\n\tc")).toBe("a⟨U+202E⟩b⟨U+200B⟩\n\tc");
  });

  it("name the values around", () => {
    expect([...containersOf(["/a/b", "/a/c"])]).toEqual(["", "/a"]);
  });
});
