import fc from "fast-check";
import { expect, test } from "vitest";

import { drawnRows, type ListPosition, topShowing, visibleRows } from "./row_window.ts";

const position: fc.Arbitrary<ListPosition> = fc.record({
  top: fc.integer({ min: 0, max: 1_000_000 }),
  height: fc.integer({ min: 0, max: 3000 }),
  row: fc.integer({ min: 1, max: 200 }),
  count: fc.integer({ min: 0, max: 20_000 }),
});

test("every visible row is drawn, and no row that does not exist", () => {
  fc.assert(
    fc.property(position, (at) => {
      const [visible, drawn] = [visibleRows(at), drawnRows(at)];
      expect(drawn.first).toBeGreaterThanOrEqual(0);
      expect(drawn.first).toBeLessThanOrEqual(visible.first);
      expect(drawn.end).toBeGreaterThanOrEqual(visible.end);
      expect(drawn.end).toBeLessThanOrEqual(at.count);
      for (const row of [visible.first, visible.end - 1]) {
        if (visible.first === visible.end) break;
        expect((row + 1) * at.row).toBeGreaterThan(at.top);
        expect(row * at.row).toBeLessThan(at.top + at.height);
      }
    }),
  );
});

test("the number of drawn rows does not grow with the list", () => {
  fc.assert(
    fc.property(position, (at) => {
      const { first, end } = drawnRows(at);
      expect(end - first).toBeLessThanOrEqual(at.height / at.row + 24);
    }),
  );
});

test("a row that is scrolled to is visible, and one that is visible does not scroll", () => {
  fc.assert(
    fc.property(position, fc.nat(20_000), (at, place) => {
      fc.pre(at.height >= at.row);
      const top = topShowing(place, at);
      expect(place * at.row).toBeGreaterThanOrEqual(top);
      expect((place + 1) * at.row).toBeLessThanOrEqual(top + at.height);
      expect(topShowing(place, { ...at, top })).toBe(top);
    }),
  );
});

test("a small movement draws the same rows", () => {
  const at = { top: 1000, height: 700, row: 88, count: 100 };
  expect(drawnRows({ ...at, top: 1020 })).toEqual(drawnRows(at));
});
