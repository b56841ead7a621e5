import type { Thread } from "../../api/types.ts";

/** What every pane of a thread gets. Panes ask the cache for the rest, so they show the same data. */
export interface PaneProps {
  thread: Thread;
  /** The id of the thread's assistant, or the name of its graph. */
  assistant: string;
  /** The selected checkpoint; `undefined` follows the newest one. */
  checkpoint: string | undefined;
}

/** Returns the graph and the assistant of a thread; `undefined` before its first run. */
export function assistantOf(thread: Thread): { graph: string; assistant: string } | undefined {
  const { graph_id: graph, assistant_id: assistant } = thread.metadata as Record<string, unknown>;
  if (typeof graph !== "string") return undefined;
  return { graph, assistant: typeof assistant === "string" ? assistant : graph };
}
