import { describe, expect, test } from "vitest";

import type { Budget } from "../../api/types.ts";
import { formatAmount, metersOf, readAmount, scaleName, scalesOf } from "./budgets.ts";

const budget = (level: Budget["level"], part: Partial<Budget>): Budget => ({
  level,
  thread_id: null,
  run_id: null,
  spent: {},
  reserved: { calls: 0, amounts: {} },
  raised: {},
  updated_at: "2030-01-01T00:00:00Z",
  ...part,
});

describe("budgets", () => {
  test("a meter that is only reserved or raised is there, too", () => {
    const meters = metersOf(
      budget("run", {
        spent: { tokens: 5 },
        reserved: { calls: 1, amounts: { calls: 1 } },
        raised: { steps: 9 },
      }),
    );
    expect(meters).toEqual([
      { meter: "calls", spent: 0, reserved: 1, raised: undefined },
      { meter: "steps", spent: 0, reserved: 0, raised: 9 },
      { meter: "tokens", spent: 5, reserved: 0, raised: undefined },
    ]);
  });

  test("what the server could not read is unknown, not zero", () => {
    expect(metersOf(budget("run", { spent: null, reserved: null, raised: null }))).toBeUndefined();
  });

  test("levels have scales of their own", () => {
    const small = budget("run", { spent: { tokens: 5 }, raised: { tokens: 20 } });
    const large = budget("tenant", { spent: { tokens: 500 } });
    const scales = scalesOf([small, large]);
    expect(scales.get(scaleName(small, "tokens"))).toBe(20);
    expect(scales.get(scaleName(large, "tokens"))).toBe(500);
  });

  test("money is entered in dollars and time in seconds", () => {
    expect(readAmount("nano_dollars", "1.50")).toBe(1_500_000_000);
    expect(readAmount("nano_dollars", "1,5")).toBe(1_500_000_000);
    expect(readAmount("time_ms", "2")).toBe(2000);
    expect(readAmount("tokens", "10")).toBe(10);
    for (const bad of ["", "x", "-1", "Infinity", "1e300"]) expect(readAmount("tokens", bad)).toBeUndefined();
    expect(formatAmount("nano_dollars", 1_500_000_000)).toBe("$1.5");
  });
});
