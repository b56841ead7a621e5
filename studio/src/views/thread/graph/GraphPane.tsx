import "./graph.css";

import { useQuery } from "@tanstack/react-query";
import { Suspense, useMemo, useRef } from "react";
import { graphQuery } from "../../../api/queries.ts";
import { ErrorBoundary } from "../../../app/ErrorBoundary.tsx";
import { lazyView } from "../../../app/lazy_view.ts";
import { type GraphActivity, IDLE, type NodeStatus } from "../../../pure/graph_activity.ts";
import { type GraphModel, graphModel, groupsOf } from "../../../pure/graph_model.ts";
import { graph as text } from "../../../text/graph.ts";
import { Button } from "../../../ui/Button.tsx";
import { Failure, Loading, Notice } from "../../../ui/Notice.tsx";
import type { PaneProps } from "../pane.ts";
import { GraphOutline } from "./GraphOutline.tsx";
import { NodePanel } from "./NodePanel.tsx";
import { useActivity } from "./use_activity.ts";
import { type GraphView, useGraphView } from "./use_view.ts";

/** The canvas and its layout are large, and only this view needs them. */
const GraphCanvas = lazyView(async () => ({ default: (await import("./GraphCanvas.tsx")).GraphCanvas }));

/** The graph of a thread's assistant, with what ran in it until the selected checkpoint. */
export function GraphPane(props: PaneProps) {
  const declared = useQuery(graphQuery(props.assistant));
  const model = useMemo(() => declared.data && graphModel(declared.data), [declared.data]);
  const { activity, isMissing } = useActivity(model, props);
  const view = useGraphView(model);
  if (!model) {
    if (declared.error) return <Failure error={declared.error} onRetry={() => void declared.refetch()} />;
    return <Loading what={text.loading} />;
  }
  return (
    <section className="graph-pane" aria-label={text.title}>
      <h2 className="visually-hidden">{text.title}</h2>
      <GraphBar model={model} activity={activity} view={view} />
      {isMissing && <p className="small muted">{text.noTrace}</p>}
      {model.nodes.size === 0 ? (
        <Notice title={text.emptyTitle}>
          <p>{text.emptyNext}</p>
        </Notice>
      ) : (
        <GraphBody key={props.assistant} model={model} activity={activity} view={view} />
      )}
    </section>
  );
}

interface BodyProps {
  model: GraphModel;
  activity: GraphActivity;
  view: GraphView;
}

function GraphBody({ model, activity, view }: BodyProps) {
  const body = useRef<HTMLDivElement>(null);
  const node = view.selected === undefined ? undefined : model.nodes.get(view.selected);
  const close = () => {
    view.select(undefined);
    const buttons = [...(body.current?.querySelectorAll<HTMLElement>("[data-node]") ?? [])];
    buttons.find((button) => button.dataset.node === node?.id)?.focus();
  };
  return (
    <div className="graph-body" ref={body}>
      {view.isOutline ? (
        <GraphOutline model={model} activity={activity} view={view} />
      ) : (
        <ErrorBoundary>
          <Suspense fallback={<Loading what={text.loadingDrawing} />}>
            <GraphCanvas model={model} activity={activity} view={view} />
          </Suspense>
        </ErrorBoundary>
      )}
      {node && <NodePanel node={node} activity={activity.nodes.get(node.id) ?? IDLE} onClose={close} />}
    </div>
  );
}

function GraphBar({ model, activity, view }: BodyProps) {
  const groups = useMemo(() => groupsOf(model), [model]);
  const isAllOpen = groups.every((group) => view.open.has(group));
  return (
    <div className="graph-bar">
      <fieldset className="graph-views">
        <legend className="visually-hidden">{text.view}</legend>
        <Button aria-pressed={!view.isOutline} onClick={() => view.setOutline(false)}>
          {text.drawing}
        </Button>
        <Button aria-pressed={view.isOutline} onClick={() => view.setOutline(true)}>
          {text.outline}
        </Button>
      </fieldset>
      {groups.length > 0 && (
        <Button kind="quiet" onClick={() => view.setOpen(isAllOpen ? [] : groups)}>
          {isAllOpen ? text.closeAll : text.openAll}
        </Button>
      )}
      <p className="graph-summary small" role="status">
        {summaryOf(model, activity)}
      </p>
    </div>
  );
}

/** Counts nodes, not the subgraphs around them. */
function summaryOf(model: GraphModel, activity: GraphActivity): string {
  const count = (status: NodeStatus) => {
    let found = 0;
    for (const [id, node] of activity.nodes)
      if (node.status === status && model.nodes.get(id)?.kind === "node") found++;
    return found;
  };
  return text.summary(count("running"), count("waiting"), count("failed"));
}
