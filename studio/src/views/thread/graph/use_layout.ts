import { useEffect, useState } from "react";

import type { GraphLayout, LayoutInput, LayoutNode } from "../../../pure/graph_layout.ts";
import { type VisibleGraph, type VisibleNode, visibleName } from "../../../pure/graph_model.ts";
import { requestLayout } from "./layout_client.ts";

export interface PlacedGraph {
  visible: VisibleGraph;
  layout: GraphLayout;
}

/** Sizes depend on names only, so that nothing moves when a count or a status changes. */
function sizeOf({ node, isOpen }: VisibleNode): LayoutNode {
  const { id, kind, parent } = node;
  if (kind === "start" || kind === "end") return { id, parent, isOpen, width: 64, height: 28 };
  const letters = Math.min(visibleName(node.name).length, 28);
  const width = Math.max(172, Math.round(letters * 8.2) + (kind === "group" ? 72 : 40));
  return { id, parent, isOpen, width, height: 56 };
}

function layoutInput({ nodes, edges }: VisibleGraph): LayoutInput {
  return {
    nodes: nodes.map(sizeOf),
    edges: edges.map(({ id, source, target }) => ({ id, source, target })),
  };
}

/** Returns the graph with its places. While a new one is laid out, the old one stays. */
export function useLayout(visible: VisibleGraph): PlacedGraph | undefined {
  const [placed, setPlaced] = useState<PlacedGraph>();
  useEffect(() => {
    let isCurrent = true;
    void requestLayout(layoutInput(visible)).then((layout) => {
      if (isCurrent) setPlaced({ visible, layout });
    });
    return () => {
      isCurrent = false;
    };
  }, [visible]);
  return placed;
}
