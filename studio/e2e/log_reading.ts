/**
 * Reads the stored log of a thread of a simulated program, without the server's and the page's own code: folds what was written into
 * states, and finds checkpoints, branches, costs and labels in it.
 */

import type { Json, JsonObject } from "../src/api/json.ts";

/** A stored value: a byte for the codec, then JSON. */
type Bytes = number[];

interface Next {
  tasks: { node: string }[];
}

type Frame = { node: string; task: string | null }[];

interface TaskWrite {
  node: string;
  updates: Bytes[];
  events: Bytes[];
  cached: boolean;
}

interface Failed {
  frame: Frame;
  index: number;
  /** `Handle` if the error handler of the node runs instead. */
  then: Json;
}

interface Change {
  AttemptFailed?: Failed;
  FrameOpened?: { frame: Frame; input: Bytes | null; next: Next };
  FrameAdvanced?: { frame: Frame; writes: TaskWrite[]; next: Next };
  StateWritten?: { update: Bytes | null };
  Replanned?: Next;
  Forked?: { thread: string | null; seq: number };
}

export interface StoredEntry {
  seq: number;
  entry: {
    kind: "Input" | "Step" | "Attempt" | "Stop" | "Update" | "Fork" | "Resume";
    parent: number;
    changes: Change[];
    stop: Json;
    extensions: [tag: number, bytes: number[]][];
  };
}

/** A graph that was entered. */
interface OpenGraph {
  path: Frame;
  values: JsonObject;
  next: string[];
  step: number;
  isOpen: boolean;
  /** The entry that wrote each item of `facts`, and the node. */
  writers: { seq: number; node: string | null }[];
}

interface Position {
  graphs: Map<string, OpenGraph>;
  restarts: number;
  ran: Ran;
}

/** What ran on the way to an entry. Nodes are named with the nodes that lead to their graph, as `parent:child`. */
export interface Ran {
  /** How often each node wrote its result. */
  executions: Record<string, number>;
  /** The same in subgraphs, in a superstep of the root graph that has not ended. If the thread goes another way, it never does. */
  inside: Record<string, number>;
  /** How often a node of the root graph ran in the superstep after another, as `one>other`. `__start__` comes before the first. */
  followed: Record<string, number>;
  /** Nodes whose failures a handler took. */
  handled: string[];
  /** The nodes of the last superstep of the root graph. */
  last: string[];
}

export interface ReadCheckpoint {
  seq: number;
  isBeforeInput: boolean;
  parent: ReadCheckpoint | undefined;
  source: "input" | "loop" | "update" | "fork";
  step: number;
  next: string[];
  values: JsonObject;
  /** The subgraphs that have a state, by the names of the nodes that lead to them. */
  subgraphs: { name: string; tasks: string; values: JsonObject }[];
  writers: { seq: number; node: string | null }[];
}

export interface ReadCall {
  kind: "model" | "tool";
  fields: JsonObject;
}

export interface ReadLog {
  /** In the order of the log. */
  checkpoints: ReadCheckpoint[];
  current: ReadCheckpoint;
  /** The subgraphs that the thread is inside of at the end of the log. */
  open: { name: string; values: JsonObject }[];
  /** What ran on the branch of the end of the log. */
  ran: Ran;
  /** The nodes that run next, in the graph and in the subgraphs that the thread is inside of. */
  pending: string[];
  calls: ReadCall[];
}

/** The tag of the extension with the number of updates that an edit made. */
const EDITS = 8;

const decode = (bytes: Bytes): Json => JSON.parse(Buffer.from(bytes.slice(1)).toString("utf8")) as Json;
const keyOf = (path: Frame) => JSON.stringify(path);
const ROOT = keyOf([]);

export function readLog(log: StoredEntry[]): ReadLog {
  const positions = new Map<number, Position>([
    [
      0,
      {
        graphs: new Map(),
        restarts: 0,
        ran: { executions: {}, inside: {}, followed: {}, handled: [], last: [] },
      },
    ],
  ]);
  const checkpoints: ReadCheckpoint[] = [];
  // The checkpoint that an entry has or follows.
  const newest = new Map<number, ReadCheckpoint | undefined>();
  const calls: ReadCall[] = [];
  let last = 0;
  for (const { seq, entry } of log) {
    const before = positions.get(forkedFrom(entry.changes) ?? entry.parent);
    if (!before) throw new Error(`entry ${seq} follows ${entry.parent}, which is not there`);
    const now = structuredClone(before);
    for (const change of entry.changes) {
      apply(now, change, seq);
      for (const write of change.FrameAdvanced?.writes ?? [])
        if (!write.cached) calls.push(...callsOf(write));
      // An edit is stored as if nodes had run.
      if (entry.kind === "Update") Object.assign(now.ran, { last: [], inside: {} });
      else if (change.FrameAdvanced) countRuns(now.ran, change.FrameAdvanced);
    }
    const edits = entry.extensions.find(([tag]) => tag === EDITS)?.[1][0];
    const isPlainFork = entry.kind === "Fork" && edits === undefined;
    if (isPlainFork && now.graphs.has(ROOT)) now.restarts += 1;
    if (entry.kind === "Fork") now.ran.inside = {};
    positions.set(seq, now);
    const parent = newest.get(entry.parent);
    newest.set(seq, parent);
    last = seq;
    const source = sourceOf(entry.kind, before, now, edits);
    if (!source) continue;
    const found = checkpointOf(now, { seq, source, parent });
    const isInput = entry.kind === "Input" || (entry.kind === "Update" && !before.graphs.has(ROOT));
    if (isInput) {
      const values = before.graphs.get(ROOT)?.values ?? {};
      const input: ReadCheckpoint = {
        ...found,
        isBeforeInput: true,
        source: "input",
        step: found.step - 1,
        next: [],
        values,
        subgraphs: [],
        writers: before.graphs.get(ROOT)?.writers ?? [],
      };
      checkpoints.push(input);
      found.parent = input;
    }
    checkpoints.push(found);
    newest.set(seq, found);
  }
  const current = newest.get(last);
  if (!current) throw new Error("the log has no checkpoint");
  const end = positions.get(last);
  const graphs = [...(end?.graphs.values() ?? [])].filter(({ isOpen }) => isOpen);
  const open = graphs.filter(({ path }) => path.length > 0).map(namedGraph);
  const pending = graphs.flatMap(({ path, next }) => next.map((node) => idOf(path, node)));
  if (!end) throw new Error("the log is empty");
  const { executions, inside } = end.ran;
  for (const [id, count] of Object.entries(inside)) executions[id] = (executions[id] ?? 0) + count;
  return { checkpoints, current, open, calls, ran: end.ran, pending };
}

const idOf = (path: Frame, node: string) => [...path.map((each) => each.node), node].join(":");
const increase = (counts: Record<string, number>, key: string) => {
  counts[key] = (counts[key] ?? 0) + 1;
};

/** Counts what a superstep ran. */
function countRuns(ran: Ran, { frame, writes }: NonNullable<Change["FrameAdvanced"]>): void {
  for (const { node } of writes) increase(ran.inside, idOf(frame, node));
  if (frame.length > 0) return;
  for (const [id, count] of Object.entries(ran.inside))
    ran.executions[id] = (ran.executions[id] ?? 0) + count;
  ran.inside = {};
  const nodes = [...new Set(writes.map(({ node }) => node))];
  for (const before of ran.last) for (const node of nodes) increase(ran.followed, `${before}>${node}`);
  ran.last = nodes;
}

function namedGraph({ path, values }: OpenGraph) {
  const name = path.map(({ node }) => node).join("/");
  return { name, tasks: keyOf(path), values: structuredClone(values) };
}

function forkedFrom(changes: Change[]): number | undefined {
  return changes.find((change) => change.Forked)?.Forked?.seq;
}

function sourceOf(
  kind: StoredEntry["entry"]["kind"],
  before: Position,
  now: Position,
  edits: number | undefined,
) {
  const [then, root] = [before.graphs.get(ROOT), now.graphs.get(ROOT)];
  const isRootStep = root !== undefined && then?.step !== root.step;
  if (kind === "Input") return "loop";
  if (kind === "Step") return isRootStep ? "loop" : undefined;
  if (kind === "Update") return isRootStep ? "update" : undefined;
  if (kind !== "Fork" || edits === 0) return undefined;
  return edits === undefined ? "fork" : "update";
}

function apply(now: Position, change: Change, seq: number): void {
  const {
    AttemptFailed: failed,
    FrameOpened: opened,
    FrameAdvanced: advanced,
    StateWritten: written,
    Replanned: replanned,
  } = change;
  if (failed?.then === "Handle") {
    const node = now.graphs.get(keyOf(failed.frame))?.next[failed.index];
    if (node !== undefined) now.ran.handled.push(idOf(failed.frame, node));
  }
  if (opened) open(now, opened, seq);
  if (opened?.frame.length === 0) Object.assign(now.ran, { last: ["__start__"], inside: {} });
  if (advanced) {
    const graph = now.graphs.get(keyOf(advanced.frame));
    if (!graph) throw new Error(`entry ${seq} continues a graph that was not entered`);
    graph.values.bells = [];
    for (const { node, updates } of advanced.writes)
      for (const update of updates) write(graph, decode(update), { seq, node });
    graph.next = nodesOf(advanced.next);
    graph.step += 1;
    leave(now, advanced.frame);
  }
  const root = now.graphs.get(ROOT);
  if (root && written?.update) write(root, decode(written.update), { seq, node: null });
  if (root && replanned) root.next = nodesOf(replanned);
}

/** Whatever was open inside of a graph has ended with its superstep. */
function leave(now: Position, path: Frame): void {
  for (const [key, graph] of now.graphs) {
    const isInside = graph.path.length > path.length && path.every((part, at) => same(part, graph.path[at]));
    if (!isInside) continue;
    // A subgraph that lives as long as its thread keeps its state.
    if (graph.path.every(({ task }, at) => at < path.length || task === null)) graph.isOpen = false;
    else now.graphs.delete(key);
  }
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

function open(now: Position, opened: NonNullable<Change["FrameOpened"]>, seq: number): void {
  const key = keyOf(opened.frame);
  const known = now.graphs.get(key);
  const parent = now.graphs.get(keyOf(opened.frame.slice(0, -1)));
  const isShared = opened.input === null && opened.frame.length > 0;
  const graph: OpenGraph = known ?? {
    path: opened.frame,
    values: isShared ? structuredClone(parent?.values ?? {}) : { ...EMPTY },
    next: [],
    step: -1,
    isOpen: true,
    writers: isShared ? [...(parent?.writers ?? [])] : [],
  };
  if (known && key === ROOT) now.restarts += 1;
  if (opened.input) {
    graph.values.bells = [];
    write(graph, decode(opened.input), { seq, node: "__start__" });
  }
  graph.next = nodesOf(opened.next);
  graph.step += 1;
  graph.isOpen = true;
  now.graphs.set(key, graph);
  leave(now, opened.frame);
}

/** The channels of every simulated program. */
const EMPTY = {
  log: [],
  total: 0,
  notes: [],
  bells: [],
  turns: {},
  facts: [],
  s0: 0,
  s1: 0,
  s2: 0,
  s3: 0,
  s4: 0,
  s5: 0,
};

function write(graph: OpenGraph, update: Json, writer: { seq: number; node: string | null }): void {
  const { values } = graph;
  for (const [name, value] of Object.entries(update as JsonObject)) {
    if (name === "log" || name === "facts" || name === "bells") {
      const items = value as Json[];
      values[name] = [...(values[name] as Json[]), ...items];
      if (name === "facts") graph.writers.push(...items.map(() => writer));
    } else if (name === "total") {
      values.total = [value].flat().reduce<number>((sum, each) => sum + Number(each), Number(values.total));
    } else if (name === "turns") {
      const turns = { ...(values.turns as Record<string, number>) };
      for (const each of [value].flat() as Record<string, number>[])
        for (const [who, count] of Object.entries(each)) turns[who] = (turns[who] ?? 0) + count;
      values.turns = Object.fromEntries(Object.entries(turns).sort(([a], [b]) => (a < b ? -1 : 1)));
    } else if (name === "notes") {
      values.notes = merge(values.notes as JsonObject[], value as { put?: JsonObject; remove?: string }[]);
    } else values[name] = value;
  }
}

function merge(notes: JsonObject[], writes: { put?: JsonObject; remove?: string }[]): JsonObject[] {
  let merged = [...notes];
  for (const { put, remove } of writes) {
    if (remove !== undefined) merged = merged.filter(({ id }) => id !== remove);
    const place = put ? merged.findIndex(({ id }) => id === put.id) : -1;
    if (put && place >= 0) merged[place] = put;
    else if (put) merged.push(put);
  }
  return merged;
}

const nodesOf = (next: Next) => next.tasks.map(({ node }) => node);

function checkpointOf(
  now: Position,
  made: Pick<ReadCheckpoint, "seq" | "source" | "parent">,
): ReadCheckpoint {
  const root = now.graphs.get(ROOT);
  if (!root) throw new Error(`entry ${made.seq} has no state`);
  const { values, next, step, writers } = structuredClone(root);
  return {
    ...made,
    isBeforeInput: false,
    step: step + now.restarts,
    next,
    values,
    writers,
    subgraphs: [...now.graphs.values()]
      .filter(({ path }) => path.length > 0)
      .sort((one, other) => (keyOf(one.path) < keyOf(other.path) ? -1 : 1))
      .map(namedGraph),
  };
}

/** The calls after an entry, on the newest branch that continues from it. */
export function callsAfter(log: StoredEntry[], from: number): ReadCall[] {
  const parents = new Map(log.map(({ seq, entry }) => [seq, entry.parent]));
  const pathBack = (seq: number): number[] => {
    const path: number[] = [];
    for (let at = seq; at > from; at = parents.get(at) ?? 0) path.push(at);
    return parents.get(path.at(-1) ?? 0) === from ? path : [];
  };
  const branch = new Set(log.map(({ seq }) => pathBack(seq)).findLast((path) => path.length > 0));
  const repeated = log.filter(({ seq, entry }) => branch.has(seq) && entry.kind !== "Update");
  const advanced = repeated.flatMap(({ entry }) => entry.changes.map((change) => change.FrameAdvanced));
  const writes = advanced.flatMap((each) => each?.writes ?? []);
  return writes.filter(({ cached }) => !cached).flatMap(callsOf);
}

function callsOf(write: TaskWrite): ReadCall[] {
  return write.events.flatMap((event) => {
    const value = decode(event) as JsonObject;
    const { span, fields } = typeof value === "object" && value !== null ? value : {};
    return span === "model" || span === "tool" ? [{ kind: span, fields: fields as JsonObject }] : [];
  });
}
