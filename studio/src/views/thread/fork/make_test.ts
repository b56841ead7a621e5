/** "Make a test of it": reads a branch over the API and saves it as a scripted case. */

import { request } from "../../../api/client.ts";
import type { Json } from "../../../api/json.ts";
import type {
  CheckpointTree,
  Run,
  StateDiff,
  ThreadFile,
  ThreadState,
  ThreadTrace,
} from "../../../api/types.ts";
import { pathTo } from "../../../pure/branches.ts";
import { type BranchStep, scenarioOf } from "../../../pure/scenario.ts";

const id = encodeURIComponent;
/** How many diffs are read at once. */
const AT_ONCE = 6;

export async function readDiff(
  thread: string,
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<StateDiff> {
  const path = `/superstep/threads/${id(thread)}/diff`;
  return await request<StateDiff>(path, { method: "POST", json: { from, to }, ...(signal && { signal }) });
}

/** Saves the branch that ends at a checkpoint as a file, and returns its name. */
export async function makeTest(tree: CheckpointTree, graph: string, tip: string): Promise<string> {
  const thread = tree.thread_id;
  const base = `/threads/${id(thread)}`;
  const [steps, runs, trace, state, files] = await Promise.all([
    readSteps(tree, tip),
    request<Run[]>(`${base}/runs`, { query: { limit: 1000 } }),
    request<ThreadTrace>(`/superstep${base}/trace`),
    request<ThreadState>(`${base}/state/${id(tip)}`),
    // A server without files answers with an error.
    request<ThreadFile[]>(`/superstep${base}/files`).catch(() => []),
  ]);
  const isWhole = steps[0]?.checkpoint.parent_checkpoint_id === null;
  const values = state.values as Json;
  const made = scenarioOf({ thread, graph, steps, isWhole, runs, trace, values, hasFiles: files.length > 0 });
  // Nothing of the server's text becomes part of the name of a file.
  const name = `${graph.replaceAll(/[^a-zA-Z0-9_-]/g, "_")}-${thread.slice(0, 8)}.case.json`;
  saveAs(name, JSON.stringify(made, null, 2));
  return name;
}

async function readSteps(tree: CheckpointTree, tip: string): Promise<BranchStep[]> {
  const path = pathTo(tree, tip);
  const steps: BranchStep[] = path.map((checkpoint) => ({ checkpoint, changes: [] }));
  for (let first = 0; first < path.length; first += AT_ONCE) {
    const places = path.slice(first, first + AT_ONCE).map((_, at) => first + at);
    await Promise.all(
      places.map(async (place) => {
        const [before, checkpoint] = [path[place - 1], path[place]];
        if (!before || !checkpoint || checkpoint.source === "fork" || checkpoint.source === "input") return;
        const { changes } = await readDiff(tree.thread_id, before.checkpoint_id, checkpoint.checkpoint_id);
        steps[place] = { checkpoint, changes };
      }),
    );
  }
  return steps;
}

function saveAs(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has read the address by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
