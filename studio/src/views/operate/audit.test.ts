import { describe, expect, test } from "vitest";

import { containsText, firstBroken, kindOf } from "./audit.ts";

const entry = (seq: number, previous: string, hash: string, action = "POST /threads") => ({
  seq,
  at: "2030-01-01T00:00:00Z",
  principal: "Ann",
  action,
  resource: "/threads",
  detail: { request: "r-1" },
  previous,
  hash,
});

describe("audit log", () => {
  test("kinds follow from the action", () => {
    const actions = ["POST /threads", "outcome", "interrupt.answer", "tool.call", "run.start"];
    expect(actions.map((action) => kindOf({ action }))).toEqual([
      "request",
      "outcome",
      "answer",
      "tool",
      "other",
    ]);
  });

  test("a changed, a missing and a reordered entry break the chain", () => {
    const [a, b, c] = [entry(1, "0", "a"), entry(2, "a", "b"), entry(3, "b", "c")];
    expect(firstBroken([a, b, c])).toBeUndefined();
    expect(firstBroken([a, { ...b, hash: "x" }, c])).toBe(c);
    expect(firstBroken([a, c])).toBe(c);
    expect(firstBroken([b, a, c])).toBe(a);
    // What is before the page is not known.
    expect(firstBroken([c])).toBeUndefined();
  });

  test("filters look at everything that is shown", () => {
    expect(containsText(entry(7, "a", "b"), "ann")).toBe(true);
    expect(containsText(entry(7, "a", "b"), "R-1")).toBe(true);
    expect(containsText(entry(7, "a", "b"), "bob")).toBe(false);
  });
});
