import type { Node } from "@xyflow/react";
import { useMemo, useRef } from "react";

import { type GraphActivity, IDLE, type NodeActivity } from "../../../pure/graph_activity.ts";
import type { PlacedNode } from "../../../pure/graph_layout.ts";
import type { VisibleNode } from "../../../pure/graph_model.ts";
import type { PlacedGraph } from "./use_layout.ts";

export interface NodeActions {
  select: (node: string | undefined) => void;
  toggle: (group: string) => void;
  /** Moves the drawing so that a node with the focus is visible. */
  reveal: (node: string, element: Element) => void;
}

export type NodeData = {
  visible: VisibleNode;
  activity: NodeActivity;
  isSelected: boolean;
  actions: NodeActions;
};
export type FlowNode = Node<NodeData, "step" | "frame" | "terminal">;

function typeOf({ node, isOpen }: VisibleNode): FlowNode["type"] {
  if (node.kind === "start" || node.kind === "end") return "terminal";
  return isOpen ? "frame" : "step";
}

function flowNode(place: PlacedNode, data: NodeData): FlowNode {
  const { x, y, width, height } = place;
  const { isOpen, depth } = data.visible;
  return {
    id: place.id,
    type: typeOf(data.visible),
    position: { x, y },
    width,
    height,
    // The sizes are known, so nothing has to be measured.
    measured: { width, height },
    // All of them are above the edges; a frame is below the nodes in it.
    zIndex: isOpen ? 100 + depth : 200,
    data,
    domAttributes: { "aria-roledescription": undefined },
  };
}

/** Returns the nodes of the drawing. Those that did not change are the same objects, which are not drawn again. */
export function useFlowNodes(
  placed: PlacedGraph | undefined,
  activity: GraphActivity,
  selected: string | undefined,
  actions: NodeActions,
): FlowNode[] {
  const cache = useRef(new Map<string, FlowNode>());
  return useMemo(() => {
    const next = new Map<string, FlowNode>();
    placed?.layout.nodes.forEach((place, index) => {
      const visible = placed.visible.nodes[index];
      if (!visible) return;
      const data: NodeData = {
        visible,
        activity: activity.nodes.get(place.id) ?? IDLE,
        isSelected: selected === place.id,
        actions,
      };
      const before = cache.current.get(place.id);
      next.set(place.id, before && isSame(before.data, data) ? before : flowNode(place, data));
    });
    cache.current = next;
    return [...next.values()];
  }, [placed, activity, selected, actions]);
}

function isSame(a: NodeData, b: NodeData): boolean {
  return (
    a.visible === b.visible &&
    a.activity === b.activity &&
    a.isSelected === b.isSelected &&
    a.actions === b.actions
  );
}
