/** Amounts of budgets, as people read and enter them. */

import type { Budget } from "../../api/types.ts";
import { formatCount, formatDuration, formatMoney } from "../../pure/format.ts";

/** What a budget says about one meter. */
export interface MeterAmounts {
  meter: string;
  spent: number;
  reserved: number;
  /** The limit that a person raised; `undefined` if the program's holds. */
  raised: number | undefined;
}

/** Returns the meters of a budget; `undefined` if the server could not read what the agent stored. */
export function metersOf(budget: Budget): MeterAmounts[] | undefined {
  const { spent, reserved, raised } = budget;
  if (!spent) return undefined;
  const names = new Set(
    [spent, reserved?.amounts ?? {}, raised ?? {}].flatMap((amounts) => Object.keys(amounts)),
  );
  return [...names].sort().map((meter) => ({
    meter,
    spent: amount(spent, meter) ?? 0,
    reserved: amount(reserved?.amounts, meter) ?? 0,
    raised: amount(raised, meter),
  }));
}

function amount(
  amounts: Readonly<Record<string, number>> | null | undefined,
  meter: string,
): number | undefined {
  return amounts && Object.hasOwn(amounts, meter) ? amounts[meter] : undefined;
}

/** Returns the greatest amount of each level and meter: bars that are compared have the same scale. */
export function scalesOf(budgets: readonly Budget[]): ReadonlyMap<string, number> {
  const scales = new Map<string, number>();
  for (const budget of budgets) {
    for (const { meter, spent, reserved, raised } of metersOf(budget) ?? []) {
      const name = scaleName(budget, meter);
      scales.set(name, Math.max(scales.get(name) ?? 0, spent + reserved, raised ?? 0));
    }
  }
  return scales;
}

export function scaleName(budget: Budget, meter: string): string {
  return `${budget.level} ${meter}`;
}

export function formatAmount(meter: string, value: number): string {
  if (meter === "nano_dollars") return formatMoney(value);
  return meter === "time_ms" ? formatDuration(value) : formatCount(value);
}

/** Returns the amount that a person entered, in the unit of the meter: money in dollars, time in seconds. */
export function readAmount(meter: string, entered: string): number | undefined {
  const value = entered.trim() === "" ? Number.NaN : Number(entered.trim().replace(",", "."));
  const unit = meter === "nano_dollars" ? 1e9 : meter === "time_ms" ? 1000 : 1;
  const read = Math.round(value * unit);
  return Number.isSafeInteger(read) && read >= 0 ? read : undefined;
}
