import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";

import { stateQuery, traceQuery, treeQuery } from "../../../api/queries.ts";
import { type GraphActivity, graphActivity, type NodeActivity } from "../../../pure/graph_activity.ts";
import type { GraphModel } from "../../../pure/graph_model.ts";
import type { PaneProps } from "../pane.ts";

const NOTHING: GraphActivity = { nodes: new Map(), edges: new Map() };

/** Returns what ran until the selected checkpoint, and whether it could not be loaded. */
export function useActivity(
  model: GraphModel | undefined,
  { thread, checkpoint }: PaneProps,
): { activity: GraphActivity; isMissing: boolean } {
  const trace = useQuery(traceQuery(thread.thread_id));
  const tree = useQuery(treeQuery(thread.thread_id));
  const state = useQuery(stateQuery(thread.thread_id, checkpoint));
  // While another checkpoint is fetched, the cache still has the state of the last one.
  const isOfCheckpoint = checkpoint === undefined || state.data?.checkpoint_id === checkpoint;
  const shown = isOfCheckpoint && !state.isPlaceholderData ? state.data : undefined;
  const isBusy = thread.status === "busy";
  const folded = useMemo(() => {
    if (!model || !trace.data || !tree.data) return NOTHING;
    return graphActivity({ model, trace: trace.data, tree: tree.data, state: shown, checkpoint, isBusy });
  }, [model, trace.data, tree.data, shown, checkpoint, isBusy]);
  return { activity: useKept(folded), isMissing: trace.isError || tree.isError };
}

/** Keeps the objects of nodes that did not change, so that only the others are drawn again. */
function useKept(next: GraphActivity): GraphActivity {
  const last = useRef({ from: NOTHING, kept: NOTHING });
  if (last.current.from === next) return last.current.kept;
  const nodes = new Map<string, NodeActivity>();
  for (const [id, activity] of next.nodes) {
    const before = last.current.kept.nodes.get(id);
    const isSame = before !== undefined && JSON.stringify(before) === JSON.stringify(activity);
    nodes.set(id, isSame ? before : activity);
  }
  last.current = { from: next, kept: { nodes, edges: next.edges } };
  return last.current.kept;
}
