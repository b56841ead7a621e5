import fc from "fast-check";
import { expect, it } from "vitest";

import { wordDiff } from "./word_diff.ts";

it("marks words", () => {
  expect(wordDiff("Ready on Friday.", "Ready on Monday at 9.")).toEqual([
    { kind: "same", text: "Ready on " },
    { kind: "removed", text: "Friday" },
    { kind: "added", text: "Monday at 9" },
    { kind: "same", text: "." },
  ]);
  expect(wordDiff("", "")).toEqual([]);
});

it("has both texts in its parts", () => {
  const word = fc.constantFrom("a", "b", " ", "\n", "ü", "🙂", ".");
  const text = fc.array(word).map((words) => words.join(""));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const parts = wordDiff(before, after);
      const without = (kind: string) =>
        parts.flatMap((part) => (part.kind === kind ? [] : [part.text])).join("");
      expect(without("added")).toBe(before);
      expect(without("removed")).toBe(after);
    }),
  );
});

it("compares long texts by lines, and gives up on longer ones", () => {
  const long = Array.from({ length: 3000 }, (_, at) => `line ${at} of many\n`).join("");
  const changed = `${long.replace("line 5 of", "LINE 5 of").replace("line 2990 of", "LINE 2990 of")}`;
  const start = performance.now();
  expect(wordDiff(long, changed).length).toBeGreaterThan(1);
  expect(wordDiff("a ".repeat(500_000), "b ".repeat(500_000)).length).toBeGreaterThan(1);
  expect(performance.now() - start).toBeLessThan(5000);
});
