import { memo } from "react";

import { type GraphNode, visibleName } from "../../../pure/graph_model.ts";
import { graph as text } from "../../../text/graph.ts";

/** Returns the name of a node as text. */
export function nameOf(node: GraphNode): string {
  if (node.kind === "start") return text.start;
  return node.kind === "end" ? text.end : visibleName(node.name);
}

/** The name of a node, which is text from the server: isolated, so that it cannot turn the text around it. */
export const NodeName = memo(function NodeName({ node }: { node: GraphNode }) {
  return (
    <bdi className="graph-name" title={nameOf(node)}>
      {nameOf(node)}
    </bdi>
  );
});
