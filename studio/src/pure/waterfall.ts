/** The waterfall of a trace: rows of a tree, bars on an axis whose times of waiting can be short, and what stands out. */

import type { CallTotals, Run, TraceSpan } from "../api/types.ts";
import { attributesOf, visitSpans } from "./messages.ts";

const NO_CALLS: CallTotals = {
  model_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  nano_dollars: 0,
  calls_of_unknown_cost: 0,
};

export const startOf = (span: TraceSpan) => Date.parse(span.started_at);
/** The end of a span; one that is open ends now. */
export const endOf = (span: TraceSpan, now: number) =>
  span.ended_at === null ? Math.max(now, startOf(span)) : Date.parse(span.ended_at);

export const isWait = (span: TraceSpan) => span.kind === "wait" || span.kind === "queue";
const isCall = (span: TraceSpan) => !["run", "wait", "queue", "superstep", "node"].includes(span.kind);

/** Adds the time that runs waited for a worker before they began: the registry knows it, the log does not. */
export function withQueueWaits(roots: readonly TraceSpan[], runs: readonly Run[] | undefined): TraceSpan[] {
  const created = new Map(runs?.map((run) => [run.run_id, run.created_at]));
  const seen = new Set<string>();
  return roots.flatMap((span) => {
    const at = span.run_id === undefined || seen.has(span.run_id) ? undefined : created.get(span.run_id);
    if (span.run_id !== undefined) seen.add(span.run_id);
    const waited = at === undefined ? 0 : startOf(span) - Date.parse(at);
    if (at === undefined || waited < QUEUE_MIN_MS) return [span];
    const queue: TraceSpan = {
      span_id: `queue/${span.span_id}`,
      name: span.name,
      kind: "queue",
      started_at: at,
      ended_at: span.started_at,
      duration_ms: waited,
      error: null,
      cost: NO_CALLS,
      attributes: {},
      spans: [],
      ...(span.run_id !== undefined && { run_id: span.run_id }),
    };
    return [queue, span];
  });
}

/** A run begins a little after it was created even if nothing is in front of it. */
const QUEUE_MIN_MS = 20;

/** Returns the trace as it was at a time: what began later is not there, and what ended later is open. */
export function traceUntil(roots: readonly TraceSpan[], until: number): TraceSpan[] {
  return roots.flatMap((span) => {
    const start = startOf(span);
    const isOver = span.ended_at !== null && Date.parse(span.ended_at) <= until;
    // A superstep begins at the moment at which the one before it ended, which is the time of the checkpoint.
    if (start > until || (start === until && !isOver && span.kind !== "run")) return [];
    if (isOver) return [span];
    const spans = traceUntil(span.spans, until);
    // How it ended, and what it cost, was not known then.
    const { outcome: _o, input_tokens: _i, output_tokens: _t, nano_dollars: _n, ...known } = span;
    return [{ ...known, spans, ended_at: null, duration_ms: null, error: null, cost: sumOf(spans) }];
  });
}

/** Adds up the model calls of spans that are next to each other. */
export function sumOf(spans: readonly TraceSpan[]): CallTotals {
  const sum = { ...NO_CALLS };
  for (const { cost } of spans) {
    sum.model_calls += cost.model_calls;
    sum.input_tokens += cost.input_tokens;
    sum.output_tokens += cost.output_tokens;
    sum.nano_dollars += cost.nano_dollars;
    sum.calls_of_unknown_cost += cost.calls_of_unknown_cost;
  }
  return sum;
}

export type SpanFilter = "all" | "model" | "tool" | "error";

export interface WaterfallRow {
  span: TraceSpan;
  /** From 1. */
  level: number;
  /** Place among its siblings that are shown, from 1, and their number. */
  place: number;
  siblings: number;
  /** The number of the row of its parent. */
  parent: number | undefined;
  isExpandable: boolean;
  isExpanded: boolean;
}

/** Returns the rows that are shown: everything that matches and what is around it, without what is inside of collapsed spans. */
export function rowsOf(
  roots: readonly TraceSpan[],
  collapsed: ReadonlySet<string>,
  filter: SpanFilter = "all",
): WaterfallRow[] {
  const shown = filter === "all" ? undefined : matching(roots, filter);
  const rows: WaterfallRow[] = [];
  const visible = (spans: readonly TraceSpan[]) => (shown ? spans.filter((span) => shown.has(span)) : spans);
  type Next = { span: TraceSpan; level: number; place: number; siblings: number; parent: number | undefined };
  const open: Next[] = [];
  const push = (spans: readonly TraceSpan[], level: number, parent: number | undefined) => {
    const inner = visible(spans);
    for (let at = inner.length - 1; at >= 0; at--) {
      const span = inner[at];
      if (span) open.push({ span, level, place: at + 1, siblings: inner.length, parent });
    }
  };
  push(roots, 1, undefined);
  for (let next = open.pop(); next; next = open.pop()) {
    const { span, level } = next;
    const isExpandable = visible(span.spans).length > 0;
    const isExpanded = isExpandable && !collapsed.has(span.span_id);
    rows.push({ ...next, isExpandable, isExpanded });
    if (isExpanded) push(span.spans, level + 1, rows.length - 1);
  }
  return rows;
}

/** Returns the spans that match, and those around them. */
function matching(roots: readonly TraceSpan[], filter: SpanFilter): Set<TraceSpan> {
  const parents = new Map<TraceSpan, TraceSpan | undefined>();
  const shown = new Set<TraceSpan>();
  visitSpans(roots, (span, parent) => {
    parents.set(span, parent);
    const matches = filter === "error" ? span.error !== null : span.kind === filter;
    for (
      let at: TraceSpan | undefined = matches ? span : undefined;
      at && !shown.has(at);
      at = parents.get(at)
    ) {
      shown.add(at);
    }
  });
  return shown;
}

/** Returns what is collapsed at first: in a long trace, everything but the newest run and its supersteps. */
export function collapsedAtFirst(roots: readonly TraceSpan[]): Set<string> {
  const collapsed = new Set<string>();
  let count = 0;
  visitSpans(roots, () => {
    count += 1;
  });
  if (count <= ROWS_AT_FIRST) return collapsed;
  const newest = roots.at(-1);
  for (const root of roots) {
    if (root !== newest) collapsed.add(root.span_id);
  }
  visitSpans(newest?.spans ?? [], (span) => {
    if (span.spans.length > 0) collapsed.add(span.span_id);
  });
  return collapsed;
}

const ROWS_AT_FIRST = 300;

/** A part of the axis. */
export interface AxisPart {
  from: number;
  to: number;
  /** Where it is, from 0 to 1. */
  start: number;
  end: number;
  /** Whether the axis is shorter than the time here. */
  isCompressed: boolean;
}

export interface Axis {
  parts: readonly AxisPart[];
  from: number;
  to: number;
}

/** The share of the axis that a compressed wait takes. */
const GAP_SHARE = 0.04;

/** Makes the axis of a trace. If it is compressed, times in which nothing but waiting happened are short, however long they were. */
export function axisOf(roots: readonly TraceSpan[], now: number, isCompressed: boolean): Axis {
  const from = Math.min(...roots.map(startOf));
  let to = from;
  for (const root of roots) to = Math.max(to, endOf(root, now));
  if (roots.length === 0) return { parts: [], from: 0, to: 0 };
  const gaps = isCompressed ? idleTimes(roots, now, from, to) : [];
  return { parts: layOut(from, Math.max(to, from + 1), gaps), from, to: Math.max(to, from + 1) };
}

type Interval = [from: number, to: number];

/** Returns the times in which only people or the queue were waited for, or no run was there. */
function idleTimes(roots: readonly TraceSpan[], now: number, from: number, to: number): Interval[] {
  const waits: Interval[] = [];
  const busy: Interval[] = [];
  const runs: Interval[] = [];
  visitSpans(roots, (span) => {
    const own: Interval = [startOf(span), endOf(span, now)];
    if (isWait(span)) waits.push(own);
    else if (isCall(span)) busy.push(own);
    if (span.kind === "run") runs.push(own);
  });
  const between = minus([[from, to]], union(runs));
  return minus(union([...waits, ...between]), union(busy));
}

function union(intervals: Interval[]): Interval[] {
  const sorted = intervals.toSorted((one, other) => one[0] - other[0]);
  const merged: Interval[] = [];
  for (const [from, to] of sorted) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** Both lists are sorted and do not overlap. */
function minus(intervals: Interval[], removed: Interval[]): Interval[] {
  const left: Interval[] = [];
  let at = 0;
  for (const [from, to] of intervals) {
    let start = from;
    while (at > 0 && (removed[at - 1]?.[1] ?? 0) > from) at -= 1;
    for (; at < removed.length; at++) {
      const [cutFrom, cutTo] = removed[at] ?? [to, to];
      if (cutFrom >= to) break;
      if (cutFrom > start) left.push([start, cutFrom]);
      start = Math.max(start, cutTo);
    }
    if (start < to) left.push([start, to]);
  }
  return left;
}

function layOut(from: number, to: number, gaps: Interval[]): AxisPart[] {
  const idle = gaps.reduce((sum, [start, end]) => sum + end - start, 0);
  const active = Math.max(to - from - idle, 1);
  // All gaps together take at most half of the axis.
  const gap = active * Math.min(GAP_SHARE, 0.5 / Math.max(gaps.length, 1));
  const compressed = gaps.filter(([start, end]) => end - start > gap * 2);
  const pieces: Omit<AxisPart, "start" | "end">[] = [];
  let at = from;
  for (const [start, end] of compressed) {
    if (start > at) pieces.push({ from: at, to: start, isCompressed: false });
    pieces.push({ from: start, to: end, isCompressed: true });
    at = end;
  }
  if (at < to || pieces.length === 0) pieces.push({ from: at, to, isCompressed: false });
  const width = (piece: Omit<AxisPart, "start" | "end">) =>
    piece.isCompressed ? gap : piece.to - piece.from;
  const whole = pieces.reduce((sum, piece) => sum + width(piece), 0);
  let x = 0;
  return pieces.map((piece) => {
    const start = x;
    x += width(piece) / whole;
    return { ...piece, start, end: x };
  });
}

/** Returns where a time is on the axis, from 0 to 1. */
export function placeOf(axis: Axis, time: number): number {
  const { parts } = axis;
  let low = 0;
  let high = parts.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time <= (parts[middle]?.to ?? 0)) high = middle;
    else low = middle + 1;
  }
  const part = parts[low];
  if (!part) return 0;
  const share = part.to === part.from ? 0 : (time - part.from) / (part.to - part.from);
  return part.start + Math.min(1, Math.max(0, share)) * (part.end - part.start);
}

/** What stands out. */
export interface Highlights {
  slow: ReadonlySet<string>;
  expensive: ReadonlySet<string>;
}

const TOP = 3;

/** Returns the calls that took the longest and those that cost the most, if they matter: each at least a tenth of all. */
export function highlightsOf(roots: readonly TraceSpan[]): Highlights {
  const calls: TraceSpan[] = [];
  const nodes: TraceSpan[] = [];
  visitSpans(roots, (span) => {
    if (isCall(span)) calls.push(span);
    // A node that has no calls inside did the work itself. One that waited for a person did not.
    else if (span.kind === "node" && span.spans.length === 0 && !span.is_cached) nodes.push(span);
  });
  const waited = waitingNodes(roots);
  const slow = top(
    [...calls, ...nodes.filter((node) => !waited.has(node))],
    (span) => span.duration_ms ?? 0,
    SLOW_MIN_MS,
  );
  const expensive = top(calls, (span) => span.nano_dollars ?? 0, 0);
  return { slow, expensive };
}

/** Nobody waits for what takes less. */
const SLOW_MIN_MS = 100;

function top(spans: TraceSpan[], measure: (span: TraceSpan) => number, least: number): Set<string> {
  const all = spans.reduce((sum, span) => sum + measure(span), 0);
  const matters = spans.filter((span) => measure(span) > least && measure(span) * 10 >= all);
  // If it is one of few, it does not stand out.
  if (spans.length <= TOP) return new Set();
  return new Set(
    matters
      .toSorted((one, other) => measure(other) - measure(one))
      .slice(0, TOP)
      .map(({ span_id }) => span_id),
  );
}

/** Returns the nodes of supersteps in which a person was waited for: their times contain the wait. */
function waitingNodes(roots: readonly TraceSpan[]): Set<TraceSpan> {
  const found = new Set<TraceSpan>();
  visitSpans(roots, (span) => {
    if (!span.spans.some(isWait)) return;
    for (const inner of span.spans) found.add(inner);
  });
  return found;
}

/** Returns the tokens of a span, as far as they were reported; `undefined` if it has no model calls. */
export function tokensOf(
  span: TraceSpan,
): { input: number | undefined; output: number | undefined } | undefined {
  if (span.kind === "model") return { input: span.input_tokens, output: span.output_tokens };
  if (span.cost.model_calls === 0) return undefined;
  return { input: span.cost.input_tokens, output: span.cost.output_tokens };
}

/** Returns the name of a span without the operation, which its kind says. */
export function nameOf(span: TraceSpan): string {
  if (span.kind === "model") return span.model ?? span.name;
  if (span.kind === "tool") return span.tool ?? span.name;
  return span.name;
}

export interface Attribute {
  name: string;
  value: string;
}

/** Returns everything else that is known of a span. */
export function otherAttributes(span: TraceSpan): Attribute[] {
  const own: Attribute[] = Object.entries(attributesOf(span)).map(([name, value]) => ({
    name,
    value: typeof value === "string" ? value : JSON.stringify(value),
  }));
  return own.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}
