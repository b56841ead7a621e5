import { useEffect, useId, useRef } from "react";

import { formatCount, formatDuration } from "../../../pure/format.ts";
import { type Execution, type NodeActivity, RECENT_MAX } from "../../../pure/graph_activity.ts";
import type { GraphNode } from "../../../pure/graph_model.ts";
import { graph as text } from "../../../text/graph.ts";
import { Badge, type Tone } from "../../../ui/Badge.tsx";
import { Button } from "../../../ui/Button.tsx";
import { Time } from "../../../ui/Time.tsx";
import { costOf, taskFacts } from "./facts.ts";
import { NodeName } from "./NodeName.tsx";
import { TaskStrip } from "./TaskStrip.tsx";

interface PanelProps {
  node: GraphNode;
  activity: NodeActivity;
  onClose: () => void;
}

const TONES: Record<NodeActivity["status"], Tone> = {
  waiting: "warn",
  failed: "bad",
  running: "accent",
  next: "plain",
  done: "good",
  idle: "plain",
};

/** What is known of one node, with its last executions. */
export function NodePanel({ node, activity, onClose }: PanelProps) {
  const titleId = useId();
  const title = useRef<HTMLHeadingElement>(null);
  // The panel is far from the node in the order of the page, so the focus goes there.
  useEffect(() => {
    if (node.id) title.current?.focus({ preventScroll: true });
  }, [node.id]);
  return (
    <section
      className="graph-panel"
      aria-labelledby={titleId}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <div className="graph-panel-top">
        <h3 id={titleId} ref={title} tabIndex={-1}>
          <NodeName node={node} />
        </h3>
        <Button kind="quiet" aria-label={text.panel.close} title={text.panel.close} onClick={onClose}>
          ×
        </Button>
      </div>
      <Facts activity={activity} />
      <h4>{text.panel.last}</h4>
      {activity.recent.length > 0 ? (
        <Executions activity={activity} />
      ) : (
        <p className="muted small">{activity.status === "idle" ? text.panel.none : text.panel.running}</p>
      )}
    </section>
  );
}

function Facts({ activity }: { activity: NodeActivity }) {
  const { panel } = text;
  const failed = activity.failures > 0 ? ` (${text.failures(activity.failures)})` : "";
  const rows: [string, string | undefined][] = [
    [panel.executions, `${formatCount(activity.executions)}${failed}`],
    [panel.worked, activity.executions > 0 ? formatDuration(activity.workedMs) : undefined],
    [panel.waited, activity.waitedMs > 0 ? formatDuration(activity.waitedMs) : undefined],
    [panel.cost, costOf(activity)],
    [panel.tasks, taskFacts(activity)],
  ];
  return (
    <>
      <p>
        <Badge tone={TONES[activity.status]}>{text.statuses[activity.status]}</Badge>
      </p>
      <dl className="graph-panel-facts small">
        {rows.map(([name, value]) =>
          value === undefined ? null : (
            <div key={name}>
              <dt className="muted">{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      {activity.tasks && <TaskStrip tasks={activity.tasks} />}
    </>
  );
}

function Executions({ activity }: { activity: NodeActivity }) {
  const { columns } = text.panel;
  const failed = activity.recent.filter(({ error }) => error !== null);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section className="table-scroll" aria-label={text.panel.last} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {Object.values(columns).map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {activity.recent.map((execution) => (
              <ExecutionRow key={execution.id} execution={execution} />
            ))}
          </tbody>
        </table>
      </section>
      {activity.executions > RECENT_MAX && (
        <p className="muted small">{text.panel.lastOf(activity.recent.length, activity.executions)}</p>
      )}
      {failed.map(({ id, error }) => (
        <details key={id} className="graph-error small">
          <summary>{text.panel.error}</summary>
          <pre>
            <bdi>{error}</bdi>
          </pre>
        </details>
      ))}
      <p className="muted small">{text.panel.together}</p>
    </>
  );
}

function ExecutionRow({ execution }: { execution: Execution }) {
  const { step, startedAt, workedMs, attempts, outcome } = execution;
  return (
    <tr>
      <td className="number">{step === undefined ? "" : formatCount(step)}</td>
      <td>
        <Time at={startedAt} />
      </td>
      <td className="number">{workedMs === null ? "" : formatDuration(workedMs)}</td>
      <td className="number">{formatCount(attempts)}</td>
      <td data-outcome={outcome}>{text.outcomes[outcome]}</td>
      <td className="number">{costOf(execution) ?? ""}</td>
    </tr>
  );
}
