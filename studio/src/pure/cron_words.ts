/** Cron expressions as sentences. What it does not understand it does not explain: a wrong sentence is worse than none. */

/** A part of a field: the values from `from` to `to`, every `step`th of them. */
interface Part {
  from: number;
  to: number;
  step: number;
}

interface FieldRule {
  min: number;
  max: number;
  names: readonly string[];
}

const DAYS = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
  "Sunday",
] as const;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;

const MINUTE: FieldRule = { min: 0, max: 59, names: [] };
const HOUR: FieldRule = { min: 0, max: 23, names: [] };
const DAY: FieldRule = { min: 1, max: 31, names: [] };
const MONTH: FieldRule = { min: 1, max: 12, names: ["", ...MONTHS.map(shortName)] };
const WEEKDAY: FieldRule = { min: 0, max: 7, names: DAYS.map(shortName) };

const NICKNAMES = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);

/** More times of a day than this are described, not listed. */
const LISTED_TIMES_MAX = 4;

/** Returns when a cron expression of five fields fires, in words; `undefined` if it uses something else. */
export function scheduleInWords(expression: string): string | undefined {
  const trimmed = expression.trim();
  const fields = (NICKNAMES.get(trimmed.toLowerCase()) ?? trimmed).split(/\s+/);
  if (fields.length !== 5) return undefined;
  const [minute, hour, day, month, weekday] = [MINUTE, HOUR, DAY, MONTH, WEEKDAY].map((rule, index) =>
    readField(fields[index] ?? "", rule),
  );
  if (!minute || !hour || !day || !month || !weekday) return undefined;
  const when = [timesInWords(minute, hour), daysInWords(day, weekday), monthsInWords(month)];
  return when.filter(Boolean).join(", ");
}

function shortName(name: string): string {
  return name.slice(0, 3).toUpperCase();
}

function readField(field: string, rule: FieldRule): Part[] | undefined {
  const parts = field.split(",").map((part) => readPart(part, rule));
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

function readPart(text: string, rule: FieldRule): Part | undefined {
  const [range = "", stepText, ...more] = text.split("/");
  const step = stepText === undefined ? 1 : number(stepText);
  if (more.length > 0 || step === undefined || step < 1) return undefined;
  if (range === "*") return { from: rule.min, to: wholeEnd(rule), step };
  const [fromText = "", toText, ...rest] = range.split("-");
  const from = fieldValue(fromText, rule);
  // A step after a single value means "from there on" to some parsers and nothing to others.
  if (rest.length > 0 || from === undefined || (toText === undefined && stepText !== undefined))
    return undefined;
  const to = toText === undefined ? from : fieldValue(toText, rule);
  return to === undefined || to < from ? undefined : { from, to, step };
}

/** Sunday is both 0 and 7: a whole week ends on Saturday. */
function wholeEnd(rule: FieldRule): number {
  return rule === WEEKDAY ? 6 : rule.max;
}

function fieldValue(text: string, rule: FieldRule): number | undefined {
  const named = text === "" ? -1 : rule.names.indexOf(text.toUpperCase());
  const value = named >= 0 ? named : number(text);
  return value !== undefined && value >= rule.min && value <= rule.max ? value : undefined;
}

function number(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined;
}

function isAny(parts: Part[], rule: FieldRule): boolean {
  return values(parts).length >= wholeEnd(rule) - rule.min + 1;
}

/** Returns the values of a field, in order and without repetitions. */
function values(parts: Part[]): number[] {
  const all = new Set<number>();
  for (const { from, to, step } of parts) for (let value = from; value <= to; value += step) all.add(value);
  return [...all].sort((a, b) => a - b);
}

function timesInWords(minute: Part[], hour: Part[]): string {
  const minutes = values(minute);
  const hours = values(hour);
  const times = hours.flatMap((h) => minutes.map((m) => clock(h, m)));
  if (times.length <= LISTED_TIMES_MAX) return `At ${list(times)}`;
  const inHour = minutesInWords(minutes);
  return isAny(hour, HOUR) ? inHour : `${inHour}, ${hoursInWords(hours)}`;
}

function minutesInWords(minutes: number[]): string {
  const [first = 0] = minutes;
  if (minutes.length === 60) return "Every minute";
  const step = evenStep(minutes, 60);
  if (minutes.length === 1) return first === 0 ? "Every hour on the hour" : `Every hour at minute ${first}`;
  if (step !== undefined && first === 0) return `Every ${step} minutes`;
  return `At ${minutes.length > 6 ? `${minutes.length} minutes` : `minutes ${list(minutes.map(String))}`} of an hour`;
}

/** Returns the distance of the values, if it is the same everywhere, also from the last one to the first of the next round. */
function evenStep(all: number[], round: number): number | undefined {
  const [first, second] = all;
  if (first === undefined || second === undefined) return undefined;
  const step = second - first;
  return all.length * step === round && all.every((value, index) => value === first + index * step)
    ? step
    : undefined;
}

function hoursInWords(hours: number[]): string {
  const [first = 0] = hours;
  const last = hours.at(-1) ?? first;
  const step = evenStep(hours, 24);
  if (step !== undefined && first === 0) return `in every ${ordinal(step)} hour`;
  if (hours.length > 1 && last - first === hours.length - 1)
    return `from ${clock(first, 0)} to ${clock(last, 59)}`;
  return `in the hours ${list(hours.map(String))}`;
}

function daysInWords(day: Part[], weekday: Part[]): string {
  const ofMonth = isAny(day, DAY) ? "" : `on day ${list(ranges(values(day), String))} of the month`;
  const week = [...new Set(values(weekday).map((value) => value % 7))];
  const ofWeek = week.length === 7 ? "" : weekdaysInWords(weekday, week);
  // If both are restricted, one of them has to match.
  if (ofMonth && ofWeek) return `${ofMonth} or ${ofWeek}`;
  return ofMonth || ofWeek;
}

function weekdaysInWords(parts: Part[], week: number[]): string {
  const [only] = parts;
  const dayName = (value: number) => DAYS[value] ?? String(value);
  if (parts.length === 1 && only && only.step === 1 && only.to - only.from > 1)
    return `${dayName(only.from)} to ${dayName(only.to)}`;
  // The week of a calendar begins on Monday.
  const ordered = [...week].sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7));
  return `on ${list(ordered.map((value) => `${dayName(value)}s`))}`;
}

function monthsInWords(month: Part[]): string {
  if (isAny(month, MONTH)) return "";
  return `in ${list(ranges(values(month), (value) => MONTHS[value - 1] ?? String(value)))}`;
}

/** Joins three or more values that follow each other. */
function ranges(all: number[], name: (value: number) => string): string[] {
  const joined: string[] = [];
  for (let start = 0; start < all.length; ) {
    let end = start;
    while (all[end + 1] === (all[end] ?? Number.NaN) + 1) end++;
    const run = all.slice(start, end + 1);
    const [first = 0] = run;
    if (run.length > 2) joined.push(`${name(first)} to ${name(run.at(-1) ?? first)}`);
    else joined.push(...run.map(name));
    start = end + 1;
  }
  return joined;
}

function clock(hour: number, minute: number): string {
  return `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
}

function ordinal(value: number): string {
  const ending = { 1: "st", 2: "nd", 3: "rd" }[(value % 10) as 1 | 2 | 3] ?? "th";
  return `${value}${value > 10 && value < 14 ? "th" : ending}`;
}

function list(items: string[]): string {
  return items.length < 2 ? (items[0] ?? "") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}
