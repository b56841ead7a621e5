/** What ran in a graph until a checkpoint: read from the trace, the tree of checkpoints and the state of a thread. */

import type {
  CallTotals,
  CheckpointTree,
  ThreadState,
  ThreadTrace,
  TraceSpan,
  TreeCheckpoint,
} from "../api/types.ts";
import { END, type GraphEdge, type GraphModel, START } from "./graph_model.ts";

/** What a node does at the checkpoint, the most urgent first. */
export const STATUSES = ["waiting", "failed", "running", "next", "done", "idle"] as const;
export type NodeStatus = (typeof STATUSES)[number];
export type TaskOutcome = Exclude<NodeStatus, "idle">;

export interface Execution {
  /** Id of its span. */
  id: string;
  step: number | undefined;
  startedAt: string;
  /** Without the time in which the run waited for people; `null` if it has not ended. */
  workedMs: number | null;
  waitedMs: number;
  attempts: number;
  outcome: "done" | "cached" | "failed" | "open";
  error: string | null;
  cost: CallTotals;
}

/** The tasks of one node in one superstep. */
export interface Tasks {
  total: number;
  /** How many tasks have which outcome, in the order of `STATUSES`. */
  counts: [TaskOutcome, number][];
  /** One for each task, or for several tasks the most urgent of theirs. */
  cells: TaskOutcome[];
}

export interface NodeActivity {
  status: NodeStatus;
  /** Executions that ended. */
  executions: number;
  failures: number;
  /** Time in supersteps with this node: tasks of one superstep count once, because they run at the same time. */
  workedMs: number;
  waitedMs: number;
  cost: CallTotals;
  /** The last superstep of the node, if it had several tasks. */
  tasks: Tasks | undefined;
  /** The last executions, the newest first. */
  recent: Execution[];
}

export interface GraphActivity {
  nodes: ReadonlyMap<string, NodeActivity>;
  /** How often each declared edge was taken. */
  edges: ReadonlyMap<string, number>;
}

export interface ActivityInput {
  model: GraphModel;
  trace: ThreadTrace;
  tree: CheckpointTree;
  /** The state at the checkpoint, if it is known. */
  state: ThreadState | undefined;
  /** `undefined` for the newest. */
  checkpoint: string | undefined;
  /** Whether a run is executing on the thread. */
  isBusy: boolean;
}

export const RECENT_MAX = 20;
export const CELLS_MAX = 24;

const NO_CALLS: CallTotals = {
  model_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  nano_dollars: 0,
  calls_of_unknown_cost: 0,
};
export const IDLE: NodeActivity = {
  status: "idle",
  executions: 0,
  failures: 0,
  workedMs: 0,
  waitedMs: 0,
  cost: NO_CALLS,
  tasks: undefined,
  recent: [],
};

export function graphActivity(input: ActivityInput): GraphActivity {
  const { model, trace, tree, state, checkpoint, isBusy } = input;
  const at = checkpoint ?? tree.current ?? undefined;
  const steps = stepsUntil(trace, tree, at);
  const nodes = new NodeFold();
  for (const { span, isCommitted } of steps) nodes.superstep(span, "", isCommitted, waitsIn(span));
  const isNewest = at === undefined || at === tree.current;
  if (state) nodes.pending(state, "", isNewest, isNewest && isBusy);
  return { nodes: nodes.result(), edges: takenEdges(model, steps, state) };
}

/** A superstep of the graph itself that happened on the way to the checkpoint. */
interface Step {
  run: TraceSpan;
  span: TraceSpan;
  /** Whether a checkpoint was made of it; otherwise it is in progress, or it failed. */
  isCommitted: boolean;
}

/** Returns the supersteps on the branch of a checkpoint, the oldest first. Without a checkpoint, all. */
export function stepsUntil(trace: ThreadTrace, tree: CheckpointTree, at: string | undefined): Step[] {
  const all = trace.runs.flatMap((run) =>
    run.spans.filter(({ kind }) => kind === "superstep").map((span) => ({ run, span })),
  );
  const { checkpoints, byId, madeAt } = indexOf(tree);
  const selected = at === undefined ? undefined : byId.get(at);
  if (!selected) return all.map((step) => ({ ...step, isCommitted: step.span.ended_at !== null }));

  const branch = branchOf(tree, selected);
  // Each checkpoint is used once.
  const used = new Map<string, number>();
  const takeMade = (time: string) => {
    const count = used.get(time) ?? 0;
    used.set(time, count + 1);
    return madeAt.get(time)?.[count];
  };
  const oldest = checkpoints[0]?.created_at ?? "";
  const steps: Step[] = [];
  for (const step of all) {
    const { ended_at, started_at } = step.span;
    const made = ended_at === null ? undefined : takeMade(ended_at);
    if (made !== undefined) {
      if (branch(made)) steps.push({ ...step, isCommitted: true });
    } else if (!tree.is_complete && ended_at !== null && ended_at <= oldest) {
      steps.push({ ...step, isCommitted: true });
    } else {
      const base = checkpoints.findLast(({ created_at }) => created_at <= started_at);
      if (base?.checkpoint_id === at) steps.push({ ...step, isCommitted: false });
    }
  }
  return steps;
}

interface TreeIndex {
  /** The oldest first. */
  checkpoints: readonly TreeCheckpoint[];
  byId: ReadonlyMap<string, TreeCheckpoint>;
  /** The checkpoints that supersteps made, by their time, in order: several may be in one millisecond. */
  madeAt: ReadonlyMap<string, readonly string[]>;
  /** How far before the current checkpoint those are that lead to it. */
  distances: ReadonlyMap<string, number>;
}

/** A timeline with thousands of checkpoints is dragged along, so what is the same for all of them is made once. */
const indexes = new WeakMap<CheckpointTree, TreeIndex>();

function indexOf(tree: CheckpointTree): TreeIndex {
  const known = indexes.get(tree);
  if (known) return known;
  // Checkpoints come newest first.
  const checkpoints = tree.checkpoints.toReversed();
  const byId = new Map(checkpoints.map((found) => [found.checkpoint_id, found]));
  const madeAt = new Map<string, string[]>();
  // The log has one checkpoint for each superstep, at the same time and in the same order.
  for (const { checkpoint_id, parent_checkpoint_id, source, created_at } of checkpoints) {
    const isInput = byId.get(parent_checkpoint_id ?? "")?.source === "input";
    if (source !== "loop" || isInput) continue;
    const ids = madeAt.get(created_at) ?? [];
    ids.push(checkpoint_id);
    madeAt.set(created_at, ids);
  }
  const distances = distancesTo(tree.current, byId);
  const index = { checkpoints, byId, madeAt, distances };
  indexes.set(tree, index);
  return index;
}

function distancesTo(id: string | null, byId: TreeIndex["byId"]): Map<string, number> {
  const distances = new Map<string, number>();
  for (let each = byId.get(id ?? ""); each; each = byId.get(each.parent_checkpoint_id ?? ""))
    distances.set(each.checkpoint_id, distances.size);
  return distances;
}

/** Returns whether a checkpoint leads to the selected one, or is it. */
function branchOf(tree: CheckpointTree, selected: TreeCheckpoint): (id: string) => boolean {
  const { byId, distances } = indexOf(tree);
  const from = distances.get(selected.checkpoint_id);
  if (from !== undefined) return (id) => (distances.get(id) ?? -1) >= from;
  const branch = distancesTo(selected.checkpoint_id, byId);
  return (id) => branch.has(id);
}

interface Interval {
  from: number;
  to: number;
}

function waitsIn(superstep: TraceSpan): Interval[] {
  return superstep.spans
    .filter(({ kind, ended_at }) => kind === "wait" && ended_at !== null)
    .map(({ started_at, ended_at }) => ({ from: Date.parse(started_at), to: Date.parse(ended_at ?? "") }));
}

/** Returns how long people were waited for between two times. */
function waited(waits: readonly Interval[], { from, to }: Interval): number {
  return waits.reduce((sum, wait) => sum + Math.max(0, Math.min(to, wait.to) - Math.max(from, wait.from)), 0);
}

function addCalls(to: CallTotals, more: CallTotals): CallTotals {
  return {
    model_calls: to.model_calls + more.model_calls,
    input_tokens: to.input_tokens + more.input_tokens,
    output_tokens: to.output_tokens + more.output_tokens,
    nano_dollars: to.nano_dollars + more.nano_dollars,
    calls_of_unknown_cost: to.calls_of_unknown_cost + more.calls_of_unknown_cost,
  };
}

/** The spans of one node in one superstep, by how they ended. */
interface NodeSpans {
  ended: TraceSpan[];
  failed: TraceSpan[];
}

function nodesIn(superstep: TraceSpan): Map<string, NodeSpans> {
  const nodes = new Map<string, NodeSpans>();
  for (const span of superstep.spans) {
    if (span.kind !== "node" || span.node === undefined) continue;
    const found = nodes.get(span.node) ?? { ended: [], failed: [] };
    (span.error === null ? found.ended : found.failed).push(span);
    nodes.set(span.node, found);
  }
  return nodes;
}

/**
 * Returns the failures after which no attempt came, with the number of attempts.
 *
 * Spans do not name their task. But a task with three attempts has a failure with each of the numbers 1 and 2, and a task that
 * failed permanently after three has those with 1, 2 and 3.
 */
export function finalFailures({ ended, failed }: NodeSpans): TraceSpan[] {
  const byAttempt: TraceSpan[][] = [];
  for (const span of failed) {
    const attempt = Math.max(1, span.attempt ?? 1);
    byAttempt[attempt] ??= [];
    byAttempt[attempt].push(span);
  }
  const retriedTo = (attempt: number) => {
    const succeeded = ended.filter((span) => (span.attempt ?? 1) === attempt).length;
    return succeeded + (byAttempt[attempt]?.length ?? 0);
  };
  return byAttempt.flatMap((spans, attempt) => spans.slice(Math.min(spans.length, retriedTo(attempt + 1))));
}

class NodeFold {
  readonly #nodes = new Map<string, NodeActivity>();
  readonly #tasks = new Map<string, TaskOutcome[]>();

  #node(id: string): NodeActivity {
    let found = this.#nodes.get(id);
    if (!found) {
      found = { ...IDLE, recent: [] };
      this.#nodes.set(id, found);
    }
    return found;
  }

  /** Adds a superstep and those of the subgraphs in it. Returns whether a node in it failed permanently. */
  superstep(superstep: TraceSpan, prefix: string, isCommitted: boolean, waits: readonly Interval[]): boolean {
    let isFailed = false;
    for (const [name, spans] of nodesIn(superstep)) {
      const id = prefix + name;
      const failures = finalFailures(spans);
      const executions = failures.map((span) => execution(span, superstep.step, waits, "failed"));
      for (const span of spans.ended) {
        const isInnerFailed = this.#inside(span, `${id}:`, isCommitted, waits);
        const outcome = isCommitted
          ? span.is_cached
            ? "cached"
            : "done"
          : isInnerFailed
            ? "failed"
            : "open";
        executions.push(execution(span, superstep.step, waits, outcome));
      }
      for (const span of spans.failed) this.#inside(span, `${id}:`, isCommitted, waits);
      isFailed ||= executions.some(({ outcome }) => outcome === "failed");
      this.#add(id, [...spans.ended, ...spans.failed], executions, waits);
    }
    return isFailed && !isCommitted;
  }

  #inside(node: TraceSpan, prefix: string, isCommitted: boolean, waits: readonly Interval[]): boolean {
    let isFailed = false;
    const supersteps = node.spans.filter(({ kind }) => kind === "superstep");
    for (const span of supersteps) {
      // Inside of a superstep in progress, those that ended are committed; one that has not, or that failed, is the last.
      const isLast = span === supersteps.at(-1);
      const isOpen = !isCommitted && isLast && isUncommitted(span);
      isFailed = this.superstep(span, prefix, !isOpen, waits) || isFailed;
    }
    return isFailed;
  }

  #add(id: string, spans: TraceSpan[], executions: Execution[], waits: readonly Interval[]): void {
    const node = this.#node(id);
    const ended = executions.filter(({ outcome }) => outcome !== "open");
    node.executions += ended.length;
    node.failures += executions.filter(({ outcome }) => outcome === "failed").length;
    node.cost = spans.reduce((sum, { cost }) => addCalls(sum, cost), node.cost);
    const from = Math.min(...spans.map(({ started_at }) => Date.parse(started_at)));
    const ends = spans.flatMap(({ ended_at }) => (ended_at === null ? [] : [Date.parse(ended_at)]));
    if (ends.length > 0) {
      const all = { from, to: Math.max(...ends) };
      const waiting = waited(waits, all);
      node.waitedMs += waiting;
      node.workedMs += Math.max(0, all.to - all.from - waiting);
    }
    node.recent = [...executions.toReversed(), ...node.recent].slice(0, RECENT_MAX);
    const last = ended.at(-1);
    if (last) node.status = executions.some(({ outcome }) => outcome === "failed") ? "failed" : "done";
    this.#tasks.set(
      id,
      executions.map(({ outcome }) =>
        outcome === "failed" ? "failed" : outcome === "open" ? "next" : "done",
      ),
    );
  }

  /** Adds the tasks that the state plans or that have not been committed. */
  pending(state: ThreadState, prefix: string, isNewest: boolean, isBusy: boolean): void {
    const tasks = new Map<string, TaskOutcome[]>();
    for (const task of state.tasks) {
      const id = prefix + task.name;
      const outcomes = tasks.get(id) ?? [];
      outcomes.push(pendingOutcome(task, isNewest, isBusy));
      tasks.set(id, outcomes);
      if (task.state) this.pending(task.state, `${id}:`, isNewest, isBusy);
    }
    for (const [id, outcomes] of tasks) {
      this.#tasks.set(id, outcomes);
      this.#node(id).status = mostUrgent(outcomes);
    }
  }

  result(): Map<string, NodeActivity> {
    for (const [id, outcomes] of this.#tasks)
      if (outcomes.length > 1) this.#node(id).tasks = tasksOf(outcomes);
    return this.#nodes;
  }
}

/** Whether the last superstep of a subgraph in progress is in progress itself, or failed. */
function isUncommitted(superstep: TraceSpan): boolean {
  return superstep.ended_at === null || hasFailure(superstep);
}

function hasFailure(superstep: TraceSpan): boolean {
  return superstep.spans.some(
    (span) => span.kind === "node" && (span.error !== null || span.spans.some((inner) => hasFailure(inner))),
  );
}

function execution(
  span: TraceSpan,
  step: number | undefined,
  waits: readonly Interval[],
  outcome: Execution["outcome"],
): Execution {
  const from = Date.parse(span.started_at);
  const to = span.ended_at === null ? null : Date.parse(span.ended_at);
  const waitedMs = to === null ? 0 : waited(waits, { from, to });
  return {
    id: span.span_id,
    step,
    startedAt: span.started_at,
    workedMs: to === null ? null : Math.max(0, to - from - waitedMs),
    waitedMs,
    attempts: span.attempt ?? 1,
    outcome,
    error: span.error,
    cost: span.cost,
  };
}

/** An older checkpoint shows its tasks with what came of them later, which had not happened then. */
function pendingOutcome(task: ThreadState["tasks"][number], isNewest: boolean, isBusy: boolean): TaskOutcome {
  const hasResult = task.result !== null && task.result !== undefined;
  if (isNewest && hasResult) return "done";
  if ((task.interrupts?.length ?? 0) > 0) return "waiting";
  if (isNewest && task.error) return "failed";
  return isBusy ? "running" : "next";
}

function mostUrgent(outcomes: readonly TaskOutcome[]): TaskOutcome {
  return STATUSES.find((status): status is TaskOutcome => outcomes.some((each) => each === status)) ?? "done";
}

/** Returns a strip of tasks. Of more than fit, each cell stands for several and shows the most urgent one. */
export function tasksOf(outcomes: readonly TaskOutcome[]): Tasks {
  const counts = STATUSES.map((status): [NodeStatus, number] => [
    status,
    outcomes.filter((each) => each === status).length,
  ]);
  const length = Math.min(outcomes.length, CELLS_MAX);
  const cells = Array.from({ length }, (_, cell) => {
    const from = Math.floor((cell * outcomes.length) / length);
    const to = Math.floor(((cell + 1) * outcomes.length) / length);
    return mostUrgent(outcomes.slice(from, to));
  });
  const isCounted = (entry: [NodeStatus, number]): entry is [TaskOutcome, number] => entry[1] > 0;
  return { total: outcomes.length, counts: counts.filter(isCounted), cells };
}

/** Returns how often each declared edge was taken: what runs in a superstep, or will, and what ran before it. */
export function takenEdges(
  model: GraphModel,
  steps: readonly Step[],
  state: ThreadState | undefined,
): Map<string, number> {
  const taken = new EdgeFold(model);
  let frame = new FrameEdges(taken, "");
  let before: Step | undefined;
  for (const step of steps) {
    if (before && step.run !== before.run && !isFork(step.run)) {
      if (isEnd(before)) frame.end();
      frame = new FrameEdges(taken, "");
    }
    // The state knows more of a superstep in progress than the trace.
    if (step.isCommitted || !state) frame.superstep(step.span);
    before = step;
  }
  if (state && state.tasks.length > 0) frame.pending(state, before?.isCommitted ? undefined : before?.span);
  else if (before && isEnd(before)) frame.end();
  return taken.counts;
}

/** A fork continues where another run was. */
function isFork({ attributes }: TraceSpan): boolean {
  return "superstep.forked_from" in attributes;
}

/** Whether the graph ended with this superstep. */
function isEnd({ run, span }: Step): boolean {
  return run.outcome === "finished" && run.spans.findLast(({ kind }) => kind === "superstep") === span;
}

class EdgeFold {
  readonly counts = new Map<string, number>();
  readonly #into = new Map<string, GraphEdge[]>();

  constructor(model: GraphModel) {
    for (const edge of model.edges) {
      const edges = this.#into.get(edge.target) ?? [];
      edges.push(edge);
      this.#into.set(edge.target, edges);
    }
  }

  into(target: string): readonly GraphEdge[] {
    return this.#into.get(target) ?? [];
  }

  take(edge: GraphEdge): void {
    this.counts.set(edge.id, (this.counts.get(edge.id) ?? 0) + 1);
  }
}

/** Follows the supersteps of one graph, or of one time in a subgraph. */
class FrameEdges {
  readonly #taken: EdgeFold;
  readonly #prefix: string;
  #at = 0;
  /** In which superstep a node ran last. */
  readonly #left = new Map<string, number>();
  readonly #entered = new Map<string, number>();
  #first: Set<string> | undefined;
  #last = new Set<string>();

  constructor(taken: EdgeFold, prefix: string) {
    this.#taken = taken;
    this.#prefix = prefix;
    this.#left.set(prefix + START, 0);
  }

  superstep(superstep: TraceSpan): void {
    const entries = new Set<string>();
    const exits = new Set<string>();
    for (const span of superstep.spans) {
      if (span.kind !== "node" || span.node === undefined) continue;
      const id = this.#prefix + span.node;
      const inner = span.spans.filter(({ kind }) => kind === "superstep");
      if (inner.length === 0) {
        entries.add(id);
        exits.add(id);
        continue;
      }
      const frame = new FrameEdges(this.#taken, `${id}:`);
      for (const each of inner) frame.superstep(each);
      for (const entry of frame.#first ?? []) entries.add(entry);
      for (const exit of frame.#last) exits.add(exit);
      entries.add(`${id}:${START}`);
      exits.add(`${id}:${END}`);
    }
    this.#advance(entries, exits);
  }

  /** Follows the tasks of a superstep that is not committed. */
  pending(state: ThreadState, superstep: TraceSpan | undefined): void {
    const entries = new Set<string>();
    for (const task of state.tasks) {
      const id = this.#prefix + task.name;
      if (!task.state) {
        entries.add(id);
        continue;
      }
      const span = superstep?.spans.find(({ kind, node }) => kind === "node" && node === task.name);
      const inner = span?.spans.filter(({ kind }) => kind === "superstep") ?? [];
      const last = inner.at(-1);
      const open = last && isUncommitted(last) ? inner.pop() : undefined;
      const frame = new FrameEdges(this.#taken, `${id}:`);
      for (const each of inner) frame.superstep(each);
      frame.pending(task.state, open);
      for (const entry of frame.#first ?? []) entries.add(entry);
      entries.add(`${id}:${START}`);
    }
    this.#advance(entries, new Set());
  }

  #advance(entries: Set<string>, exits: Set<string>): void {
    if (entries.size === 0) return;
    this.#at++;
    for (const entry of entries) this.#enter(entry);
    for (const exit of exits) this.#left.set(exit, this.#at);
    this.#first ??= entries;
    this.#last = exits;
  }

  end(): void {
    this.#at++;
    this.#enter(this.#prefix + END);
  }

  #enter(target: string): void {
    const before = this.#entered.get(target) ?? 0;
    for (const edge of this.#taken.into(target)) {
      const left = this.#left.get(edge.source);
      if (left === undefined) continue;
      // A join waits for sources of several supersteps; a decision is about the next one.
      const isNew = edge.isConditional ? left === this.#at - 1 : left >= before && left < this.#at;
      if (isNew) this.#taken.take(edge);
    }
    this.#entered.set(target, this.#at);
  }
}
