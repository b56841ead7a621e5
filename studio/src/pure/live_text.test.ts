import fc from "fast-check";
import { expect, test } from "vitest";

import { ownParts, tailOf } from "./live_text.ts";

test("a short text is drawn whole, and a long one from a paragraph on", () => {
  expect(tailOf("Hello", 100)).toBe("Hello");
  const text = "One paragraph.\n\n".repeat(100);
  const tail = tailOf(text, 200);
  expect(tail.length).toBeLessThan(320);
  expect(tail.startsWith("One paragraph.")).toBe(true);
});

test("the tail is the end of the text, is long enough, and begins at the same place most of the time", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 600 }), (text) => {
      const tail = tailOf(text, 100);
      expect(text.endsWith(tail)).toBe(true);
      expect(tail.length).toBeGreaterThanOrEqual(Math.min(text.length, 50));
      expect(tail.length).toBeLessThanOrEqual(150);
    }),
  );
  const starts = new Set<number>();
  for (let length = 1000; length < 2000; length++) {
    starts.add(length - tailOf("x".repeat(length), 100).length);
  }
  expect(starts.size).toBeLessThanOrEqual(21);
});

test("parts are what they were", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.string()), (parts, before) => {
      expect(ownParts(parts, before)).toEqual(parts);
    }),
  );
});
