/** The checkpoints of a thread along a line: what is where, what is nearest, and what to draw for each pixel. */

import type {
  CheckpointTree,
  RaisedInterrupt,
  ThreadTrace,
  TraceSpan,
  TreeCheckpoint,
} from "../api/types.ts";

export interface Mark {
  checkpoint: TreeCheckpoint;
  at: number;
  /** The first checkpoint of its run. */
  isRunStart: boolean;
  /** The thread waited for a person here. */
  hasInterrupt: boolean;
  /** What followed here failed. */
  hasFailure: boolean;
}

export interface Timeline {
  /** The checkpoints of one branch, the oldest first. */
  marks: Mark[];
  /** Where each checkpoint of the branch is in `marks`. */
  places: ReadonlyMap<string, number>;
  /** Checkpoints of other branches: the last place that they share with this one, how far behind it they are, and when. */
  others: { from: number; distance: number; at: number }[];
}

export type Scale = "step" | "time";

/** When something happened that is not part of a checkpoint. */
export interface TimelineEvents {
  interrupts: readonly number[];
  failures: readonly number[];
}

/** Returns the branch that a checkpoint is on: all before it, and what followed it last. Without one, the current branch. */
export function branchOf(tree: CheckpointTree, checkpoint: string | undefined): TreeCheckpoint[] {
  const all = tree.checkpoints;
  const selected = checkpoint && all.find((each) => each.checkpoint_id === checkpoint);
  if (!selected || selected.is_on_current_branch) {
    return all.filter((each) => each.is_on_current_branch).reverse();
  }
  const byId = new Map(all.map((each) => [each.checkpoint_id, each]));
  const followers = new Map<string, TreeCheckpoint>();
  // The newest come first, so the first follower is the newest.
  for (const each of all) {
    const parent = each.parent_checkpoint_id;
    if (parent && !followers.has(parent)) followers.set(parent, each);
  }
  const branch: TreeCheckpoint[] = [];
  for (let each: TreeCheckpoint | undefined = selected; each; ) {
    branch.push(each);
    each = each.parent_checkpoint_id ? byId.get(each.parent_checkpoint_id) : undefined;
  }
  branch.reverse();
  for (let each = followers.get(selected.checkpoint_id); each; each = followers.get(each.checkpoint_id)) {
    branch.push(each);
  }
  return branch;
}

export function timelineOf(
  tree: CheckpointTree,
  checkpoint: string | undefined,
  events: TimelineEvents,
): Timeline {
  const branch = branchOf(tree, checkpoint);
  const places = new Map(branch.map((each, place) => [each.checkpoint_id, place]));
  const marks = branch.map(
    (each, place): Mark => ({
      checkpoint: each,
      at: Date.parse(each.created_at),
      isRunStart: place === 0 || branch[place - 1]?.run_id !== each.run_id,
      hasInterrupt: false,
      hasFailure: false,
    }),
  );
  const waited = checkpointsAt(tree, events.interrupts);
  const failed = checkpointsAt(tree, events.failures);
  for (const mark of marks) {
    mark.hasInterrupt = waited.has(mark.checkpoint.checkpoint_id);
    mark.hasFailure = failed.has(mark.checkpoint.checkpoint_id);
  }
  return { marks, places, others: othersOf(tree, places) };
}

function othersOf(tree: CheckpointTree, places: ReadonlyMap<string, number>): Timeline["others"] {
  const known = new Map<string, { from: number; distance: number }>();
  const others: Timeline["others"] = [];
  for (const each of tree.checkpoints.toReversed()) {
    const place = places.get(each.checkpoint_id);
    if (place !== undefined) {
      known.set(each.checkpoint_id, { from: place, distance: 0 });
      continue;
    }
    const parent = each.parent_checkpoint_id ? known.get(each.parent_checkpoint_id) : undefined;
    const here = { from: parent?.from ?? 0, distance: (parent?.distance ?? 0) + 1 };
    known.set(each.checkpoint_id, here);
    others.push({ ...here, at: Date.parse(each.created_at) });
  }
  return others;
}

/**
 * Returns the checkpoints that were the newest ones at these times. Only one branch of a thread runs at a time, so that is where
 * something happened, whichever branch is on screen.
 */
export function checkpointsAt(tree: CheckpointTree, times: readonly number[]): Set<string> {
  const all = tree.checkpoints
    .map((each) => ({ id: each.checkpoint_id, at: Date.parse(each.created_at) }))
    .reverse()
    .sort((a, b) => a.at - b.at);
  const found = times.flatMap((time) => all[lastUntil(all, time)]?.id ?? []);
  return new Set(found);
}

/** Returns the place of the last one that is not after a time; the first one if all are. */
function lastUntil(all: readonly { at: number }[], time: number): number {
  let [low, high] = [0, all.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((all[middle]?.at ?? 0) <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Returns when threads waited for a person and when something failed, from what the server says about them. */
export function eventsOf(
  interrupts: readonly RaisedInterrupt[] | undefined,
  trace: ThreadTrace | undefined,
): TimelineEvents {
  const events = { interrupts: [] as number[], failures: [] as number[] };
  for (const each of interrupts ?? []) events.interrupts.push(Date.parse(each.asked_at));
  for (const run of trace?.runs ?? []) addEvents(run, events);
  return events;
}

function addEvents(span: TraceSpan, events: { interrupts: number[]; failures: number[] }): void {
  // Only what ended a superstep is a failure of the thread: a call or an attempt that was repeated is not.
  if (span.error !== null && (span.kind === "run" || span.kind === "superstep")) {
    events.failures.push(Date.parse(span.ended_at ?? span.started_at));
  }
  if (span.kind === "wait") events.interrupts.push(Date.parse(span.started_at));
  if (span.kind === "run" || span.kind === "superstep")
    for (const each of span.spans) addEvents(each, events);
}

/** Returns where the marks are, from 0 to 1. */
export function positionsOf(timeline: Timeline, scale: Scale): Float64Array {
  const { marks } = timeline;
  const last = marks.length - 1;
  const positions = new Float64Array(marks.length);
  const start = marks[0]?.at ?? 0;
  const span = (marks[last]?.at ?? 0) - start;
  for (let place = 0; place <= last; place++) {
    const isByTime = scale === "time" && span > 0;
    const position = isByTime ? ((marks[place]?.at ?? 0) - start) / span : place / Math.max(1, last);
    // Clocks of servers differ: a later checkpoint is never shown before an earlier one.
    positions[place] = Math.max(position, positions[place - 1] ?? 0);
  }
  return positions;
}

/** Returns where checkpoints of other branches are, from 0 to 1. */
export function otherPositions(timeline: Timeline, scale: Scale): number[] {
  const { marks, others } = timeline;
  const start = marks[0]?.at ?? 0;
  const span = (marks.at(-1)?.at ?? 0) - start;
  return others.map(({ from, distance, at }) => {
    const byStep = (from + distance) / Math.max(1, marks.length - 1);
    const position = scale === "time" && span > 0 ? (at - start) / span : byStep;
    return Math.min(1, Math.max(0, position));
  });
}

/** Returns the place whose position is nearest. */
export function nearestPlace(positions: Float64Array, position: number): number {
  let [low, high] = [0, positions.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((positions[middle] ?? 0) < position) low = middle + 1;
    else high = middle;
  }
  const before = positions[low - 1];
  const here = positions[low];
  if (before !== undefined && here !== undefined && position - before < here - position) return low - 1;
  return Math.max(0, low);
}

/** The columns of pixels to draw, each once, however many marks are in it. */
export interface Columns {
  plain: number[];
  runs: number[];
  interrupts: number[];
  failures: number[];
  others: number[];
}

export function columnsOf(timeline: Timeline, scale: Scale, width: number): Columns {
  const positions = positionsOf(timeline, scale);
  const plain = new Set<number>();
  const runs = new Set<number>();
  const interrupts = new Set<number>();
  const failures = new Set<number>();
  timeline.marks.forEach((mark, place) => {
    const x = columnAt(positions[place] ?? 0, width);
    plain.add(x);
    if (mark.isRunStart) runs.add(x);
    if (mark.hasInterrupt) interrupts.add(x);
    if (mark.hasFailure) failures.add(x);
  });
  const others = new Set(otherPositions(timeline, scale).map((position) => columnAt(position, width)));
  return {
    plain: [...plain],
    runs: [...runs],
    interrupts: [...interrupts],
    failures: [...failures],
    others: [...others],
  };
}

function columnAt(position: number, width: number): number {
  return Math.round(position * Math.max(0, width - 1)) + 0.5;
}

/** Returns a line for each column, as the data of one SVG path. */
export function pathOf(columns: readonly number[], top: number, height: number): string {
  return columns.map((x) => `M${x} ${top}v${height}`).join("");
}

/** Returns a circle at each column, as the data of one SVG path. */
export function circlesOf(columns: readonly number[], y: number, radius: number): string {
  const arc = `a${radius} ${radius} 0 1 0`;
  return columns.map((x) => `M${x - radius} ${y}${arc} ${2 * radius} 0${arc} ${-2 * radius} 0`).join("");
}

/** Returns a cross at each column, as the data of one SVG path. */
export function crossesOf(columns: readonly number[], y: number, size: number): string {
  const [whole, back] = [2 * size, -2 * size];
  return columns.map((x) => `M${x - size} ${y - size}l${whole} ${whole}m${back} 0l${whole} ${back}`).join("");
}

/** Returns the place to go to for a key of a slider; `undefined` if the key is for something else. */
export function placeForKey(key: string, place: number, count: number, isRtl: boolean): number | undefined {
  const page = Math.max(2, Math.round(count / 20));
  const moves: Record<string, number> = {
    ArrowLeft: isRtl ? 1 : -1,
    ArrowRight: isRtl ? -1 : 1,
    ArrowDown: -1,
    ArrowUp: 1,
    PageDown: -page,
    PageUp: page,
    Home: -count,
    End: count,
  };
  const move = Object.hasOwn(moves, key) ? moves[key] : undefined;
  if (move === undefined || count === 0) return undefined;
  return Math.min(count - 1, Math.max(0, place + move));
}
