import { formatCount } from "../pure/format.ts";
import type { Execution, NodeStatus } from "../pure/graph_activity.ts";

const times = (count: number) => `${formatCount(count)}×`;
const nodes = (count: number) => (count === 1 ? "1 node" : `${formatCount(count)} nodes`);

const statuses: Record<NodeStatus, string> = {
  waiting: "Waits for a person",
  failed: "Failed",
  running: "Running",
  next: "Runs next",
  done: "Done",
  idle: "Has not run",
};

const outcomes: Record<Execution["outcome"], string> = {
  done: "Done",
  cached: "From the cache",
  failed: "Failed",
  open: "Not finished",
};

export const graph = {
  title: "Graph",
  loading: "the graph",
  loadingDrawing: "the drawing",
  view: "View",
  drawing: "Drawing",
  outline: "Outline",
  openAll: "Open all subgraphs",
  closeAll: "Close all subgraphs",
  emptyTitle: "This graph has no nodes.",
  emptyNext: "Look at the declaration of the graph in your program.",
  noTrace: "Counts and times are missing, because the trace of this thread could not be loaded.",
  canvas: "Drawing of the graph. Press Outline to read the same as a list.",
  canvasKeys: "Arrow keys move the drawing, + and − change its size, 0 shows all of it.",
  zoom: "Size of the drawing",
  zoomIn: "Larger",
  zoomOut: "Smaller",
  zoomAll: "Show all",
  start: "Start",
  end: "End",
  open: (name: string) => `Open subgraph ${name}`,
  close: (name: string) => `Close subgraph ${name}`,
  subgraph: (count: number) => `Subgraph with ${nodes(count)}`,
  statuses,
  outcomes,
  /** Short words on a node of the drawing. */
  marks: {
    waiting: "Waits",
    failed: "Failed",
    running: "Running",
    next: "Next",
    done: "",
    idle: "",
  } as Record<NodeStatus, string>,
  times,
  executions: (count: number) => (count === 1 ? "1 execution" : `${formatCount(count)} executions`),
  failures: (count: number) => (count === 1 ? "1 failed" : `${formatCount(count)} failed`),
  tasks: (count: number) => `${formatCount(count)} tasks`,
  tasksNow: (parts: string[]) => `Last superstep: ${parts.join(", ")}`,
  taskCount: (count: number, status: NodeStatus) => `${formatCount(count)} ${statuses[status].toLowerCase()}`,
  worked: (duration: string) => `${duration} of work`,
  waited: (duration: string) => `${duration} waiting for people`,
  leadsTo: "Leads to",
  taken: (count: number) => `taken ${times(count)}`,
  notTaken: "not taken",
  conditional: "a decision",
  summary: (running: number, waiting: number, failed: number) => {
    const parts = [
      running > 0 ? `${nodes(running)} running.` : "",
      waiting > 0 ? `${nodes(waiting)} waiting for a person.` : "",
      failed > 0 ? `${nodes(failed)} failed.` : "",
    ];
    return parts.filter(Boolean).join(" ");
  },
  legend: { taken: "Taken", possible: "Not taken", decision: "Decision" },
  panel: {
    close: "Close the panel of this node",
    status: "Now",
    executions: "Executions",
    worked: "Time",
    waited: "Waited for people",
    cost: "Cost of models",
    tasks: "Tasks",
    last: "Last executions",
    lastOf: (shown: number, all: number) =>
      `The last ${formatCount(shown)} of ${formatCount(all)}. The trace has all of them.`,
    none: "This node has not run on the way to this checkpoint.",
    running: "It has no result yet. Results appear here when the superstep ends.",
    error: "Why it failed",
    together: "All nodes of a superstep end together in the log, so a time is that of the superstep.",
    columns: {
      step: "Step",
      started: "Started",
      worked: "Took",
      attempts: "Attempts",
      outcome: "Outcome",
      cost: "Cost",
    },
  },
} as const;
