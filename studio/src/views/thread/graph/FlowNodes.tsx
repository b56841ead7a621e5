import type { NodeProps } from "@xyflow/react";
import { memo } from "react";

import { graph as text } from "../../../text/graph.ts";
import { shortFacts, taskFacts } from "./facts.ts";
import type { FlowNode, NodeData } from "./flow_nodes.ts";
import { NodeName, nameOf } from "./NodeName.tsx";
import { TaskStrip } from "./TaskStrip.tsx";

/** The button that a node is: it opens the panel of the node. */
function MainButton({ data }: { data: NodeData }) {
  const { visible, activity, isSelected, actions } = data;
  const { node } = visible;
  const mark = text.marks[activity.status];
  const facts = shortFacts(activity);
  return (
    <button
      type="button"
      className="graph-node-main"
      data-node={node.id}
      aria-pressed={isSelected}
      onClick={() => actions.select(isSelected ? undefined : node.id)}
      onFocus={(event) => actions.reveal(node.id, event.currentTarget)}
    >
      <NodeName node={node} />
      <span className="graph-facts">
        {mark && <span className="graph-mark">{mark}</span>}
        {facts.length > 0 && <span>{facts.join(" · ")}</span>}
      </span>
      <span className="visually-hidden">{taskFacts(activity)}</span>
    </button>
  );
}

function ToggleButton({ data }: { data: NodeData }) {
  const { node, isOpen } = data.visible;
  const name = nameOf(node);
  return (
    <button
      type="button"
      className="graph-toggle"
      data-toggle={node.id}
      aria-expanded={isOpen}
      aria-label={isOpen ? text.close(name) : text.open(name)}
      onClick={() => data.actions.toggle(node.id)}
      onFocus={(event) => data.actions.reveal(node.id, event.currentTarget)}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d={isOpen ? "M3 8h10" : "M3 8h10M8 3v10"} fill="none" stroke="currentColor" strokeWidth="2" />
      </svg>
    </button>
  );
}

/** A node, or a subgraph that is closed. */
export const StepNode = memo(function StepNode({ data }: NodeProps<FlowNode>) {
  const { activity, visible, isSelected } = data;
  const isGroup = visible.node.kind === "group";
  return (
    <div className="graph-node" data-status={activity.status} data-group={isGroup} data-selected={isSelected}>
      <MainButton data={data} />
      {isGroup && <ToggleButton data={data} />}
      {activity.tasks && <TaskStrip tasks={activity.tasks} />}
    </div>
  );
});

/** A subgraph that is open: a frame around its nodes. */
export const FrameNode = memo(function FrameNode({ data }: NodeProps<FlowNode>) {
  return (
    <div className="graph-frame" data-status={data.activity.status} data-selected={data.isSelected}>
      <div className="graph-frame-header">
        <ToggleButton data={data} />
        <MainButton data={data} />
      </div>
    </div>
  );
});

/** The start or the end. */
export const TerminalNode = memo(function TerminalNode({ data }: NodeProps<FlowNode>) {
  return <div className="graph-terminal">{nameOf(data.visible.node)}</div>;
});
