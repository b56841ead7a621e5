import type { GraphActivity } from "../../../pure/graph_activity.ts";
import type { VisibleEdge } from "../../../pure/graph_model.ts";

/** Returns how often the edges were taken that a visible edge stands for. */
export function timesTaken(edge: VisibleEdge, activity: GraphActivity): number {
  return edge.declared.reduce((sum, id) => sum + (activity.edges.get(id) ?? 0), 0);
}
