import fc from "fast-check";
import { describe, expect, it } from "vitest";

import inbox from "../views/agents/fixtures/inbox.json";
import {
  type ChangedRange,
  changeSetOf,
  changeSetOfFile,
  columnLetters,
  columnNumber,
  gridOf,
  parseCell,
  summarize,
} from "./change_set.ts";

const range = (name: string, what: string, shown: string[]): ChangedRange => ({
  range: name,
  sheet: name.slice(0, name.lastIndexOf("!")),
  what,
  cells: shown.length,
  shown,
});

describe("a cell", () => {
  it("has its place, both values and the code that wrote it", () => {
    expect(parseCell('Counts!B2: empty → "Tea" (step 1, line 5)')).toEqual({
      sheet: "Counts",
      cell: "B2",
      row: 2,
      column: 2,
      before: undefined,
      after: { kind: "text", text: "Tea" },
      step: 1,
      line: 5,
    });
    const formula = parseCell('A!b!AA10: =IF(A1=" → ",1,2) → -1.5');
    expect(formula).toMatchObject({ sheet: "A!b", column: 27, before: { kind: "formula" } });
    expect(formula?.after).toEqual({ kind: "number", text: "-1.5" });
    expect(parseCell("S!A1: 2024-01-05 → empty")).toMatchObject({
      before: { kind: "other", text: "2024-01-05" },
      after: undefined,
    });
  });

  it("keeps an arrow, a quote and a step inside of its text", () => {
    const tricky = parseCell('S!A1: "a → b" → "say \\"x\\" (step 9, line 9)" (step 2, line 3)');
    expect(tricky?.before?.text).toBe("a → b");
    expect(tricky?.after?.text).toBe('say "x" (step 9, line 9)');
    expect(tricky?.step).toBe(2);
  });

  it("keeps hidden characters as the program escaped them", () => {
    expect(parseCell('S!A1: empty → "a\\u{202e}b\\nc"')?.after?.text).toBe("a\\u{202e}b\nc");
  });

  it("reads every text back", () => {
    const quoted = (text: string) => `"${text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, other) => {
        const [before, after] = [one, other].map((each) => each.replace(/[^\x20-\x7e\n→é]/g, ""));
        const change = parseCell(`S!C3: ${quoted(before ?? "")} → ${quoted(after ?? "")} (step 1, line 2)`);
        expect(change?.before?.text).toBe(before);
        expect(change?.after?.text).toBe(after);
      }),
    );
  });

  it("in another form is none", () => {
    expect(parseCell("anything")).toBeUndefined();
    expect(parseCell("S!A1: 1")).toBeUndefined();
  });
});

describe("a change set", () => {
  const changes = changeSetOf(inbox.sheet.interrupt.value);

  it("is read from a real interrupt", () => {
    expect(changes?.cells).toBe(10);
    expect(changes?.sheets).toEqual([{ sheet: "Counts", what: "new", cells: 10 }]);
    expect(changes?.checks.every(({ isOk }) => isOk)).toBe(true);
    const grid = gridOf(changes?.ranges ?? []);
    expect(grid.rows).toEqual([1, 2, 3, 4, 5]);
    expect(grid.columns).toEqual([1, 2]);
    expect(grid.cells.get(4)?.get(1)?.after?.text).toBe("Tea");
    expect(grid.unread).toEqual([]);
  });

  it("is none without ranges", () => {
    expect(changeSetOf({ summary: "This workbook is not what the recipe was made for." })).toBeUndefined();
    expect(changeSetOf(null)).toBeUndefined();
  });

  it("loses no line that it cannot read", () => {
    const grid = gridOf([range("S!A1:A2", "added", ["S!A1: empty → 1", "something else"])]);
    expect(grid.count).toBe(1);
    expect(grid.unread).toEqual(["something else"]);
  });

  it("of 15,000 cells is read quickly", () => {
    const shown = Array.from({ length: 15_000 }, (_, at) => {
      return `Data!${columnLetters((at % 10) + 1)}${Math.floor(at / 10) + 1}: ${at} → "x ${at}" (step 1, line 2)`;
    });
    const began = performance.now();
    const grid = gridOf([range("Data!A1:J1500", "changed", shown)]);
    expect([grid.rows.length, grid.columns.length, grid.count]).toEqual([1500, 10, 15_000]);
    expect(performance.now() - began).toBeLessThan(500);
  });

  it("names many ranges of a column as one", () => {
    const ranges = [3, 9, 5, 7, 11].map((row) => range(`Data!B${row}`, "changed", [`Data!B${row}: 1 → 2`]));
    expect(summarize([...ranges, range("Data!A1:C2", "added", [])])).toEqual([
      { range: "Data!B3:B11", what: "changed", cells: 5, ranges: 5 },
      expect.objectContaining({ range: "Data!A1:C2", ranges: 1 }),
    ]);
  });

  it("is read from its file, too", () => {
    const file = changeSetOfFile(
      'Counts!A1: empty → "x" (step 1, line 3)\nSales!B2: 1 → 2 (step 1, line 4)\n',
    );
    expect(file.sheets.map(({ sheet, cells }) => [sheet, cells])).toEqual([
      ["Counts", 1],
      ["Sales", 1],
    ]);
  });
});

it("columns have letters", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 16_384 }), (n) => columnNumber(columnLetters(n)) === n));
  expect(columnLetters(703)).toBe("AAA");
});
