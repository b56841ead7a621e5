/** Numbers, money and times as people read them. */

import type { CallTotals } from "../api/types.ts";

const dollars = new Intl.NumberFormat("en", {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 3,
});
const count = new Intl.NumberFormat("en");

export function formatCount(value: number): string {
  return count.format(value);
}

/** Money in billionths of a dollar. */
export function formatMoney(nanoDollars: number): string {
  return dollars.format(nanoDollars / 1e9);
}

/** What calls cost. A cost that is not known is never shown as zero. */
export function formatCost(totals: CallTotals): string {
  if (totals.calls_of_unknown_cost === 0) return formatMoney(totals.nano_dollars);
  return totals.nano_dollars === 0 ? "cost unknown" : `at least ${formatMoney(totals.nano_dollars)}`;
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns how long ago a time was, or how far ahead it is. */
export function relativeTime(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1000);
  const ahead = Math.abs(seconds);
  const format = (value: number, unit: Intl.RelativeTimeFormatUnit) =>
    relative.format(Math.sign(seconds) * value, unit);
  if (ahead < 5) return "now";
  if (ahead < 60) return format(ahead, "second");
  if (ahead < 3600) return format(Math.floor(ahead / 60), "minute");
  if (ahead < 86_400) return format(Math.floor(ahead / 3600), "hour");
  return format(Math.floor(ahead / 86_400), "day");
}

const clock = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });
const dateAndClock = new Intl.DateTimeFormat("en", {
  dateStyle: "medium",
  timeStyle: "medium",
  hourCycle: "h23",
});

/** Returns a time as a clock shows it, with the date if it is of another day. */
export function clockTime(at: number, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return (isToday ? clock : dateAndClock).format(at);
}

const relative = new Intl.RelativeTimeFormat("en", { style: "short" });

/** The beginning of an id, which is enough to recognize it. */
export function shortId(id: string): string {
  return id.slice(-8);
}
