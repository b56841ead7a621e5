import "@xyflow/react/dist/base.css";

import { ReactFlow, ReactFlowProvider } from "@xyflow/react";
import { useMemo } from "react";

import type { GraphActivity } from "../../../pure/graph_activity.ts";
import { type GraphModel, type VisibleGraph, visibleGraph } from "../../../pure/graph_model.ts";
import { graph as text } from "../../../text/graph.ts";
import { Loading } from "../../../ui/Notice.tsx";
import { EdgeLayer } from "./EdgeLayer.tsx";
import { FrameNode, StepNode, TerminalNode } from "./FlowNodes.tsx";
import { useFlowNodes } from "./flow_nodes.ts";
import { Legend } from "./Legend.tsx";
import { type PlacedGraph, useLayout } from "./use_layout.ts";
import { FIT, useMoves } from "./use_moves.ts";
import type { GraphView } from "./use_view.ts";
import { ZoomBar } from "./ZoomBar.tsx";

interface CanvasProps {
  model: GraphModel;
  activity: GraphActivity;
  view: GraphView;
}

/** The drawing. This module is loaded when it is first shown. */
export function GraphCanvas(props: CanvasProps) {
  const { model, view } = props;
  const visible = useMemo<VisibleGraph>(() => visibleGraph(model, view.open), [model, view.open]);
  const placed = useLayout(visible);
  if (!placed) return <Loading what={text.loadingDrawing} />;
  return (
    <ReactFlowProvider>
      <Drawing {...props} placed={placed} />
    </ReactFlowProvider>
  );
}

const NODE_TYPES = { step: StepNode, frame: FrameNode, terminal: TerminalNode };
const PRO_OPTIONS = { hideAttribution: true };

function Drawing({ activity, view, placed }: CanvasProps & { placed: PlacedGraph }) {
  const { actions, onKeyDown, onInit, onMoveStart, ref } = useMoves(view, placed, activity);
  const nodes = useFlowNodes(placed, activity, view.selected, actions);
  return (
    // The keys are those of the buttons inside of it; each of them can also be pressed.
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys only repeat what the buttons do
    <div className="graph-canvas" ref={ref} onKeyDown={onKeyDown}>
      <ReactFlow
        aria-label={text.canvas}
        nodes={nodes}
        nodeTypes={NODE_TYPES}
        onInit={onInit}
        onMoveStart={onMoveStart}
        minZoom={0.05}
        maxZoom={2}
        onlyRenderVisibleElements
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        elevateNodesOnSelect={false}
        disableKeyboardA11y
        zoomOnDoubleClick={false}
        deleteKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        panActivationKeyCode={null}
        zoomActivationKeyCode={null}
        proOptions={PRO_OPTIONS}
      >
        <EdgeLayer placed={placed} activity={activity} />
      </ReactFlow>
      <div className="graph-foot">
        <Legend />
        <ZoomBar fit={FIT} />
      </div>
    </div>
  );
}
