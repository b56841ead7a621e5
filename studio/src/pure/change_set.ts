/** The change set of `sheet`: every cell that would be saved, by sheet and range, and as a grid with before and after. */

import { isObject, type Json, textOf } from "../api/json.ts";

export type CellKind = "text" | "number" | "formula" | "other";
export interface CellValue {
  kind: CellKind;
  text: string;
}

export interface CellChange {
  sheet: string;
  cell: string;
  row: number;
  /** From 1. */
  column: number;
  before: CellValue | undefined;
  after: CellValue | undefined;
  /** Step and line of the code that wrote it. */
  step: number | undefined;
  line: number | undefined;
}

export interface ChangedRange {
  range: string;
  sheet: string;
  what: string;
  cells: number;
  /** One line for each cell. */
  shown: string[];
}

export interface ChangedSheet {
  sheet: string;
  what: string;
  cells: number;
}

export interface Check {
  name: string;
  isOk: boolean;
  found: string;
}

export interface ChangeSet {
  summary: string;
  /** Why the last answer was not accepted. */
  problem: string;
  stopped: string;
  cells: number;
  sheets: ChangedSheet[];
  ranges: ChangedRange[];
  looks: string[];
  leftOut: string[];
  checks: Check[];
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const texts = (value: unknown): string[] => list(value).filter((item) => typeof item === "string");
const numberOf = (value: unknown, field: string): number => {
  const found = isObject(value) ? value[field] : undefined;
  return typeof found === "number" ? found : 0;
};

/** Reads the value of the interrupt. `undefined` if it has no ranges: then it asks about something else. */
export function changeSetOf(value: unknown): ChangeSet | undefined {
  if (!isObject(value) || !Array.isArray(value.ranges)) return undefined;
  return {
    summary: textOf(value, "summary") ?? "",
    problem: textOf(value, "problem") ?? "",
    stopped: textOf(value, "stopped") ?? "",
    cells: numberOf(value, "cells"),
    sheets: list(value.sheets).map((sheet) => ({
      sheet: textOf(sheet, "sheet") ?? "",
      what: textOf(sheet, "what") ?? "",
      cells: numberOf(sheet, "cells"),
    })),
    ranges: value.ranges.map(rangeOf),
    looks: texts(value.looks),
    leftOut: list(value.left_out).map((item) => (typeof item === "string" ? item : JSON.stringify(item))),
    checks: checksOf(value.checks),
  };
}

export function checksOf(value: unknown): Check[] {
  return list(value).map((check) => ({
    name: textOf(check, "name") ?? "",
    isOk: isObject(check) && check.ok === true,
    found: textOf(check, "found") ?? "",
  }));
}

function rangeOf(value: Json): ChangedRange {
  const range = textOf(value, "range") ?? "";
  return {
    range,
    sheet: range.slice(0, Math.max(range.lastIndexOf("!"), 0)),
    what: textOf(value, "what") ?? "",
    cells: numberOf(value, "cells"),
    shown: isObject(value) ? texts(value.shown) : [],
  };
}

/** Returns the change set that a result file `changes.txt` lists: cells without ranges and checks. */
export function changeSetOfFile(text: string): ChangeSet {
  const shown = text.split("\n").filter(Boolean);
  const bySheet = new Map<string, string[]>();
  for (const line of shown) {
    const sheet = parseCell(line)?.sheet ?? "";
    const lines = bySheet.get(sheet);
    if (lines) lines.push(line);
    else bySheet.set(sheet, [line]);
  }
  const sheets = [...bySheet].map(([sheet, lines]) => ({ sheet, what: "changed", cells: lines.length }));
  const ranges = [...bySheet].map(([sheet, lines]) => ({
    range: sheet,
    sheet,
    what: "changed",
    cells: lines.length,
    shown: lines,
  }));
  const none = { summary: "", problem: "", stopped: "", looks: [], leftOut: [], checks: [] };
  return { ...none, cells: shown.length, sheets, ranges };
}

/** Reads `Sheet!A1: old → new (step 3, line 4)`. Names of sheets have no colon. */
export function parseCell(line: string): CellChange | undefined {
  const head = /^([^:]*)!([A-Z]{1,3})([1-9]\d{0,6}): /.exec(line);
  if (!head) return undefined;
  const [all, sheet = "", letters = "", row = ""] = head;
  const by = / \(step (\d+), line (\d+)\)$/.exec(line);
  const rest = line.slice(all.length, by ? by.index : line.length);
  const end = endOfValue(rest);
  if (!rest.startsWith(" → ", end)) return undefined;
  const after = rest.slice(end + 3);
  if (endOfValue(after) !== after.length && !after.startsWith("=")) return undefined;
  return {
    sheet,
    cell: `${letters}${row}`,
    row: Number(row),
    column: columnNumber(letters),
    before: cellValueOf(rest.slice(0, end)),
    after: cellValueOf(after),
    step: by ? Number(by[1]) : undefined,
    line: by ? Number(by[2]) : undefined,
  };
}

/** Returns where a value ends: a text at its closing quote, anything else at an arrow outside of quotes. */
function endOfValue(text: string): number {
  if (text.startsWith('"')) {
    for (let at = 1; at < text.length; at++) {
      if (text[at] === "\\") at++;
      else if (text[at] === '"') return at + 1;
    }
    return text.length;
  }
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') isQuoted = !isQuoted;
    if (!isQuoted && text.startsWith(" → ", at)) return at;
  }
  return text.length;
}

function cellValueOf(text: string): CellValue | undefined {
  if (text === "empty") return undefined;
  if (text.startsWith('"')) return { kind: "text", text: unquoted(text) };
  if (text.startsWith("=")) return { kind: "formula", text };
  return { kind: /^-?[\d.]+(e[+-]?\d+)?$/i.test(text) ? "number" : "other", text };
}

/** Undoes the escapes of what can be seen. Hidden characters stay escaped. */
function unquoted(text: string): string {
  const inside = text.slice(1, -1);
  return inside.replace(/\\(["'\\nt])/g, (_, c: string) => (c === "n" ? "\n" : c === "t" ? "\t" : c));
}

export function columnNumber(letters: string): number {
  let number = 0;
  for (const letter of letters) number = number * 26 + letter.charCodeAt(0) - 64;
  return number;
}

export function columnLetters(number: number): string {
  let letters = "";
  for (let rest = number; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return letters;
}

/** The changed cells of a sheet by row and column; what is between them did not change. */
export interface Grid {
  rows: number[];
  columns: number[];
  cells: Map<number, Map<number, CellChange>>;
  count: number;
  /** Lines that are not cells in the known form. They are shown as they are, because they would be saved, too. */
  unread: string[];
}

export function gridOf(ranges: ChangedRange[]): Grid {
  const cells = new Map<number, Map<number, CellChange>>();
  const columns = new Set<number>();
  const unread: string[] = [];
  let count = 0;
  for (const line of ranges.flatMap((range) => range.shown)) {
    const change = parseCell(line);
    if (!change) {
      unread.push(line);
      continue;
    }
    const row = cells.get(change.row) ?? new Map<number, CellChange>();
    row.set(change.column, change);
    cells.set(change.row, row);
    columns.add(change.column);
    count++;
  }
  const sorted = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b);
  return { rows: sorted(cells.keys()), columns: sorted(columns), cells, count, unread };
}

/** Joins ranges of the same columns that changed in the same way, if there are many of them. */
export function summarize(
  ranges: ChangedRange[],
): { range: string; what: string; cells: number; ranges: number }[] {
  const groups = new Map<string, ChangedRange[]>();
  for (const range of ranges) {
    const span = spanOf(range.range);
    const key = span ? `${range.sheet}\n${range.what}\n${span.columns}` : range.range;
    const group = groups.get(key);
    if (group) group.push(range);
    else groups.set(key, [range]);
  }
  return [...groups.values()].flatMap((group) => {
    if (group.length <= ALONE_MAX) return group.map((one) => ({ ...one, ranges: 1 }));
    const spans = group.flatMap(({ range }) => spanOf(range) ?? []);
    const [first, last] = spans[0]?.columns.split(":") ?? ["", ""];
    const from = spans.reduce((least, span) => Math.min(least, span.first), Number.POSITIVE_INFINITY);
    const to = spans.reduce((most, span) => Math.max(most, span.last), 0);
    const cells = group.reduce((sum, range) => sum + range.cells, 0);
    const range = `${group[0]?.sheet}!${first}${from}:${last}${to}`;
    return [{ range, what: group[0]?.what ?? "", cells, ranges: group.length }];
  });
}

const ALONE_MAX = 3;

function spanOf(range: string): { columns: string; first: number; last: number } | undefined {
  const found = /!([A-Z]+)(\d+)(?::([A-Z]+)(\d+))?$/.exec(range);
  if (!found) return undefined;
  const [, left = "", top = "", right = left, bottom = top] = found;
  return { columns: `${left}:${right}`, first: Number(top), last: Number(bottom) };
}
