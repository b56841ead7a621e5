import fc from "fast-check";
import { describe, expect, it } from "vitest";

import states from "../views/agents/fixtures/states.json";
import { type DiffRow, diffPages, diffWords, docsPagesOf, foldRows, type Piece } from "./page_diff.ts";

const joined = (pieces: Piece[]) => pieces.map(({ text }) => text).join("");
const side = (rows: DiffRow[], name: "before" | "after") =>
  rows.flatMap((row) => (row[name] ? [joined(row[name])] : [])).join("\n");

const word = fc.constantFrom("a", "b", "the", "queue", " ", "  ", "\n", ".", "`pay`", "é");
const text = fc.array(word, { maxLength: 60 }).map((words) => words.join(""));

describe("a diff of two texts", () => {
  it("has both texts in it, whatever they are", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const pieces = diffWords(before, after);
        expect(joined(pieces.filter(({ kind }) => kind !== "added"))).toBe(before);
        expect(joined(pieces.filter(({ kind }) => kind !== "removed"))).toBe(after);
        const rows = diffPages(before, after);
        expect(side(rows, "before")).toBe(before);
        expect(side(rows, "after")).toBe(after);
        expect(rows.every((row) => row.isChanged || row.before === row.after)).toBe(true);
      }),
    );
  });

  it("of equal texts has no change", () => {
    fc.assert(fc.property(text, (same) => diffPages(same, same).every((row) => !row.isChanged)));
  });

  it("marks the words that changed and no others", () => {
    expect(diffWords("It takes money in `pay`.", "It takes cash in `pay`.")).toEqual([
      { kind: "same", text: "It takes " },
      { kind: "removed", text: "money" },
      { kind: "added", text: "cash" },
      { kind: "same", text: " in `pay`." },
    ]);
  });

  it("of texts with nothing in common ends soon", () => {
    const many = (letter: string) => Array.from({ length: 20_000 }, (_, at) => `${letter}${at}`).join("\n");
    const began = performance.now();
    const rows = diffPages(many("a"), many("b"));
    expect(rows).toHaveLength(20_000);
    expect(performance.now() - began).toBeLessThan(3000);
  });

  it("folds what is far from a change", () => {
    const lines = Array.from({ length: 40 }, (_, at) => `line ${at}`);
    const blocks = foldRows(diffPages(lines.join("\n"), lines.with(20, "other").join("\n")));
    expect(blocks.map(({ kind, rows }) => [kind, rows.length])).toEqual([
      ["gap", 17],
      ["rows", 7],
      ["gap", 16],
    ]);
  });
});

describe("pages of docs", () => {
  it("of a finished run have their versions and scores", () => {
    const [page, ...others] = docsPagesOf(states.docs_done);
    expect(others).toEqual([]);
    expect(page?.isFinished).toBe(true);
    expect(page?.versions.map(({ score }) => score)).toEqual([62, 90]);
    expect(page?.scores.map(({ overall }) => overall)).toEqual([62, 90]);
    expect(page?.threshold).toBe(80);
    expect(page?.markdown).toContain("# File Structure");
  });

  it("of a run at its gate come from the state of the subgraph", () => {
    const [page] = docsPagesOf(states.docs_open);
    expect(page?.agent).toBe("file-structure");
    expect(page?.isFinished).toBe(false);
    expect(page?.versions.at(-1)?.text).toBe("The program begins in `src/main.rs`.");
    expect(page?.scores[0]?.parts?.accuracy).toBe(62);
    expect(page?.questions).toHaveLength(3);
  });

  it("are none in another state", () => {
    expect(docsPagesOf({ values: { results: "no" }, tasks: [] })).toEqual([]);
    expect(docsPagesOf({ values: null })).toEqual([]);
  });
});
