/** Large answers, made from real ones. */

import type {
  CheckpointTree,
  DeclaredGraph,
  InboxItem,
  ThreadState,
  ThreadTrace,
  TraceSpan,
} from "../src/api/types.ts";

const two = (number: number) => String(number).padStart(2, "0");
const uuid = (number: number) => `00000000-${number.toString(16).padStart(4, "0")}-8001-8055-8f3a714fcf2e`;

/** A tree of one branch, the newest first. */
export function largeTree(real: CheckpointTree, count: number): CheckpointTree {
  const [one] = real.checkpoints;
  const [branch] = real.branches;
  if (!one || !branch) throw new Error("the real thread has no checkpoint");
  const start = Date.parse(one.created_at);
  const checkpoints = Array.from({ length: count }, (_, at) => {
    const place = count - at;
    return {
      ...one,
      checkpoint_id: at === 0 ? one.checkpoint_id : uuid(place),
      parent_checkpoint_id: place === 1 ? null : uuid(place - 1),
      step: place - 2,
      source: place === 1 ? ("input" as const) : ("loop" as const),
      created_at: new Date(start - at * 1000).toISOString(),
    };
  });
  return { ...real, current: one.checkpoint_id, checkpoints, branches: [branch], is_complete: true };
}

/** The most checkpoints that the server puts into a page of a tree. */
const PAGE_MAX = 1000;

/** A page of a large tree, as the server cuts it. */
export function pageOfTree(tree: CheckpointTree, url: URL): CheckpointTree {
  const limit = Number(url.searchParams.get("limit") ?? PAGE_MAX);
  if (limit > PAGE_MAX) throw new Error(`the server refuses a limit of ${limit}`);
  const before = url.searchParams.get("before");
  const at = tree.checkpoints.findIndex(({ checkpoint_id }) => checkpoint_id === before);
  if (before !== null && at < 0) throw new Error(`there is no checkpoint ${before}`);
  const checkpoints = tree.checkpoints.slice(at + 1, at + 1 + limit);
  return {
    ...tree,
    checkpoints,
    branches: before === null ? tree.branches : [],
    is_complete: at + 1 + checkpoints.length === tree.checkpoints.length,
  };
}

/** A conversation of questions and answers with Markdown and calls of tools. */
export function largeMessages(real: ThreadState, count: number): ThreadState {
  const values = real.values as { messages: Record<string, unknown>[] };
  const [one] = values.messages;
  const text = (at: number) =>
    `Message **${at}**: ${"the queue holds ten thousand orders a day, ".repeat(1 + (at % 7))}\n\n- first\n- second \`code\`\n`;
  const messages = Array.from({ length: count }, (_, at) => {
    const base = { ...one, id: `message-${at}`, content: text(at) };
    if (at % 4 === 1) {
      const call = {
        id: `call-${at}`,
        name: "look_up",
        args: { order: at, why: "to know" },
        type: "tool_call",
      };
      return { ...base, type: "ai", tool_calls: [call], invalid_tool_calls: [] };
    }
    if (at % 4 === 2)
      return { ...base, type: "tool", name: "look_up", tool_call_id: `call-${at - 1}`, status: "success" };
    return { ...base, type: at % 4 === 0 ? "human" : "ai" };
  });
  return { ...real, values: { ...values, messages } };
}

/** One more superstep, with as many tasks of one node. */
export function largeTrace(real: ThreadTrace, tasks: number): ThreadTrace {
  const run = real.runs.at(-1);
  const step = run?.spans.find(({ kind }) => kind === "superstep");
  const node = step?.spans.find(({ kind }) => kind === "node");
  if (!run || !step || !node) throw new Error("the real trace has no superstep");
  const spans = Array.from({ length: tasks }, (_, at) => renamed(node, `task${at}-`));
  const wide: TraceSpan = { ...renamed(step, "wide-"), spans };
  return { ...real, runs: [...real.runs.slice(0, -1), { ...run, spans: [...run.spans, wide] }] };
}

function renamed(span: TraceSpan, prefix: string): TraceSpan {
  return {
    ...span,
    span_id: `${prefix}${span.span_id}`,
    spans: span.spans.map((inner) => renamed(inner, prefix)),
  };
}

/** A page of an inbox with as many items. */
export function largeInbox(real: InboxItem, total: number, url: URL): { items: InboxItem[]; next: number } {
  const offset = Number(url.searchParams.get("offset") ?? 0);
  const limit = Math.min(Number(url.searchParams.get("limit") ?? 10), total - offset);
  const items = Array.from({ length: Math.max(0, limit) }, (_, at): InboxItem => {
    const number = offset + at;
    const id = `interrupt-${number}`;
    const description = `Subject: Re: The report ${number}?\n\n${String(real.description)}`;
    return {
      ...real,
      thread_id: uuid(number),
      description,
      asked_at: new Date(Date.parse(real.asked_at) + number * 1000).toISOString(),
      interrupt: { ...real.interrupt, id },
    };
  });
  return { items, next: offset + items.length };
}

/** A graph of as many nodes, in subgraphs of the same size that follow one another, with branches and ways back. */
export function largeGraph(real: DeclaredGraph, nodes: number, subgraphs: number): DeclaredGraph {
  const inEach = nodes / subgraphs;
  const [start, one] = real.nodes;
  const end = real.nodes.find(({ id }) => id === "__end__");
  if (!start || !one || !end) throw new Error("the real graph has no nodes");
  const id = (group: number, at: number) => `part${two(group)}:step${two(at)}`;
  const graph: DeclaredGraph = { nodes: [start], edges: [{ source: start.id, target: id(0, 0) }] };
  for (let group = 0; group < subgraphs; group += 1) {
    for (let at = 0; at < inEach; at += 1) {
      graph.nodes.push({ ...one, id: id(group, at), data: { name: id(group, at) } });
      if (at > 0) graph.edges.push({ source: id(group, at - 1), target: id(group, at) });
      if (at > 2) graph.edges.push({ source: id(group, at - 3), target: id(group, at), conditional: true });
    }
    graph.edges.push({ source: id(group, inEach - 1), target: id(group, 0), conditional: true });
    const target = group + 1 < subgraphs ? id(group + 1, 0) : end.id;
    graph.edges.push({ source: id(group, inEach - 1), target });
    if (group + 5 < subgraphs)
      graph.edges.push({ source: id(group, inEach - 1), target: id(group + 5, 0), conditional: true });
  }
  graph.nodes.push(end);
  return graph;
}
