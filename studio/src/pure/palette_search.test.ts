import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { fuzzyScore, type PaletteEntry, searchEntries } from "./palette_search.ts";

const entry = (id: string, group: string, title: string, detail?: string): PaletteEntry => ({
  id,
  group,
  title,
  detail,
});

const score = (query: string, text: string): number => fuzzyScore(query, text) ?? -1;

describe("fuzzy search", () => {
  test("letters have to be in their order", () => {
    expect(fuzzyScore("adl", "Audit log")).toBeDefined();
    expect(fuzzyScore("lda", "Audit log")).toBeUndefined();
  });

  test("a whole word is better than a part, and a part is better than gaps", () => {
    expect(score("log", "Audit log")).toBeGreaterThan(score("log", "Catalogs"));
    expect(score("log", "Catalogs")).toBeGreaterThan(score("log", "Long outing"));
  });

  test("case and accents do not matter", () => {
    expect(fuzzyScore("ubersicht", "Übersicht")).toBeDefined();
    expect(fuzzyScore("ÜBER", "ubersicht")).toBeDefined();
  });

  test("all words of a query have to match, in any order", () => {
    expect(fuzzyScore("log audit", "Audit log")).toBeDefined();
    expect(fuzzyScore("log mail", "Audit log")).toBeUndefined();
  });

  test("whatever is left of a text after removing letters finds it", () => {
    const word = fc.stringMatching(/^[a-z0-9]{1,20}$/);
    fc.assert(
      fc.property(word, fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }), (text, kept) => {
        const query = [...text].filter((_, index) => kept[index]).join("");
        expect(fuzzyScore(query, text)).toBeDefined();
      }),
    );
  });

  test("what is found contains the letters in their order", () => {
    const letters = fc.stringMatching(/^[abc ]{0,8}$/);
    fc.assert(
      fc.property(letters, letters, (query, text) => {
        const words = query.split(" ").filter(Boolean);
        const isInside = words.every((word) => new RegExp([...word].join(".*")).test(text));
        expect(fuzzyScore(query, text) !== undefined).toBe(isInside);
      }),
    );
  });

  test("never fails, whatever is typed", () => {
    fc.assert(fc.property(fc.string(), fc.string(), (query, text) => score(query, text) >= -1));
  });
});

describe("entries", () => {
  const all = [
    entry("1", "sections", "Inbox"),
    entry("2", "sections", "Audit log"),
    entry("3", "threads", "email_assistant", "error"),
    entry("4", "threads", "audit helper"),
    entry("5", "threads", "analyze"),
  ];

  test("without a query all are there in their order, up to the limit", () => {
    const groups = searchEntries(" ", all, 2);
    expect(groups.map(({ group, entries }) => [group, ...entries.map(({ id }) => id)])).toEqual([
      ["sections", "1", "2"],
      ["threads", "3", "4"],
    ]);
  });

  test("words may match in different fields", () => {
    expect(searchEntries("mail error", all, 5)[0]?.entries[0]?.id).toBe("3");
  });

  test("the group with the best entry comes first, and groups without one are left out", () => {
    expect(searchEntries("audit h", all, 5).map(({ group }) => group)).toEqual(["threads"]);
    expect(searchEntries("inbox", all, 5).map(({ group }) => group)).toEqual(["sections"]);
    expect(searchEntries("zzz", all, 5)).toEqual([]);
  });
});
