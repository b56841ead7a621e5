import { memo, useMemo } from "react";

import { type GraphActivity, IDLE } from "../../../pure/graph_activity.ts";
import { type GraphModel, type VisibleEdge, visibleGraph } from "../../../pure/graph_model.ts";
import { graph as text } from "../../../text/graph.ts";
import { timesTaken } from "./edges.ts";
import { longFacts } from "./facts.ts";
import { NodeName, nameOf } from "./NodeName.tsx";
import { TaskStrip } from "./TaskStrip.tsx";
import type { GraphView } from "./use_view.ts";

interface OutlineProps {
  model: GraphModel;
  activity: GraphActivity;
  view: GraphView;
}

/** The graph as a list of lists, with the same facts as the drawing. */
export function GraphOutline({ model, activity, view }: OutlineProps) {
  const edges = useMemo(() => {
    const bySource = new Map<string, VisibleEdge[]>();
    for (const edge of visibleGraph(model, view.open).edges)
      bySource.set(edge.source, [...(bySource.get(edge.source) ?? []), edge]);
    return bySource;
  }, [model, view.open]);
  return (
    <div className="graph-outline">
      <OutlineList ids={model.roots} {...{ model, activity, view, edges }} />
    </div>
  );
}

type LevelProps = OutlineProps & { edges: ReadonlyMap<string, VisibleEdge[]> };

function OutlineList({ ids, ...level }: LevelProps & { ids: readonly string[] }) {
  return (
    <ul>
      {ids.map((id) => (
        <OutlineItem key={id} id={id} {...level} />
      ))}
    </ul>
  );
}

function OutlineItem({ id, ...level }: LevelProps & { id: string }) {
  const { model, activity, view, edges } = level;
  const node = model.nodes.get(id);
  if (!node) return null;
  const own = activity.nodes.get(id) ?? IDLE;
  const isTerminal = node.kind === "start" || node.kind === "end";
  const isOpen = view.open.has(id);
  return (
    <li className="graph-item" data-status={own.status}>
      <div className="graph-item-row">
        {isTerminal ? (
          <span className="graph-item-name muted">{nameOf(node)}</span>
        ) : (
          <button
            type="button"
            className="graph-item-name"
            data-node={id}
            aria-pressed={view.selected === id}
            onClick={() => view.select(view.selected === id ? undefined : id)}
          >
            <NodeName node={node} />
          </button>
        )}
        {node.kind === "group" && (
          <button
            type="button"
            className="button graph-item-toggle"
            aria-expanded={isOpen}
            onClick={() => view.toggle(id)}
          >
            <span aria-hidden="true">{isOpen ? "−" : "+"}</span>
            {text.subgraph(node.children.length)}
          </button>
        )}
        {!isTerminal && <span className="graph-item-facts small">{longFacts(own).join(" · ")}</span>}
        {own.tasks && <TaskStrip tasks={own.tasks} />}
      </div>
      <LeadsTo edges={edges.get(id)} model={model} activity={activity} />
      {isOpen && node.children.length > 0 && <OutlineList ids={node.children} {...level} />}
    </li>
  );
}

interface LeadsToProps {
  edges: VisibleEdge[] | undefined;
  model: GraphModel;
  activity: GraphActivity;
}

const LeadsTo = memo(function LeadsTo({ edges, model, activity }: LeadsToProps) {
  if (!edges) return null;
  return (
    <p className="graph-leads small muted">
      {text.leadsTo}{" "}
      {edges.map((edge, index) => {
        const target = model.nodes.get(edge.target);
        const taken = timesTaken(edge, activity);
        const facts = [taken > 0 ? text.taken(taken) : text.notTaken];
        if (edge.isConditional) facts.unshift(text.conditional);
        return (
          <span key={edge.id} data-taken={taken > 0}>
            {index > 0 && ", "}
            <bdi>{target ? nameOf(target) : ""}</bdi> ({facts.join(", ")})
          </span>
        );
      })}
    </p>
  );
});
