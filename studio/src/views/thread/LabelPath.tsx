import { useQuery } from "@tanstack/react-query";

import { treeQuery } from "../../api/queries.ts";
import type { StateLabels } from "../../api/types.ts";
import { setQuery } from "../../app/location.ts";
import { readablePath, visibleText } from "../../pure/json_tree.ts";
import { type LabeledValue, type LabelMarks, labeledInside, stepsBetween } from "../../pure/state_view.ts";
import { branchOf } from "../../pure/timeline.ts";
import { thread as texts } from "../../text/thread.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { Time } from "../../ui/Time.tsx";

const text = texts.state;

/** How many values inside of the selected one are listed. */
const INSIDE_MAX = 5;

interface LabelPathProps {
  thread: string;
  checkpoint: string | undefined;
  pointer: string;
  marks: LabelMarks;
}

/** The path that a labeled value took: who wrote it, when, and how long it has been in the state. */
export function LabelPath({ thread, checkpoint, pointer, marks }: LabelPathProps) {
  const { here, inside } = labeledInside(marks, pointer);
  if (here.length === 0 && inside.length === 0) return null;
  return (
    <div className="stack label-path">
      {here.map((value) => (
        <ValuePath key={value.path} value={value} thread={thread} checkpoint={checkpoint} />
      ))}
      {here.length === 0 && (
        <div className="row small">
          <span className="muted">{text.inside}</span>
          {inside.slice(0, INSIDE_MAX).map((value) => (
            <bdi key={value.path} className="mono">
              {visibleText(readablePath(value.path))}
            </bdi>
          ))}
          {inside.length > INSIDE_MAX && <span>…</span>}
        </div>
      )}
    </div>
  );
}

interface ValuePathProps {
  value: LabeledValue;
  thread: string;
  checkpoint: string | undefined;
}

function ValuePath({ value, thread, checkpoint }: ValuePathProps) {
  const { data: tree } = useQuery(treeQuery(thread));
  const { origin } = value;
  const branch = tree ? branchOf(tree, checkpoint) : [];
  const steps = origin && checkpoint ? stepsBetween(branch, origin.checkpoint_id, checkpoint) : undefined;
  return (
    <div className="stack small">
      <div className="row">
        <strong>{text.labelPath}</strong>
        <LabelBadges labels={value.labels} />
      </div>
      {origin ? (
        <ol className="label-steps">
          <li>
            {text.writtenBy[origin.by]} {origin.node !== null && <code>{visibleText(origin.node)}</code>}{" "}
            <span className="muted">
              <Time at={origin.at} />
            </span>{" "}
            {origin.checkpoint_id !== checkpoint && (
              <Button kind="quiet" onClick={() => setQuery({ checkpoint: origin.checkpoint_id })}>
                {text.atCheckpoint}
              </Button>
            )}
          </li>
          {steps !== undefined && steps >= 0 && <li>{text.passed(steps)}</li>}
        </ol>
      ) : (
        <p className="muted">{text.originUnknown}</p>
      )}
    </div>
  );
}

function LabelBadges({ labels }: { labels: readonly string[] }) {
  return labels.map((label) => (
    <Badge key={label} tone="label">
      <bdi>{visibleText(label.slice(0, 60))}</bdi>
    </Badge>
  ));
}

/** The labels that nodes removed on the way, and why. */
export function Declassified({ labels }: { labels: StateLabels }) {
  return (
    <section className="stack">
      <h3>{text.declassified}</h3>
      <ul className="stack">
        {labels.declassified.map((each, at) => (
          <li key={at} className="card small row">
            <LabelBadges labels={each.labels} />
            <bdi>{text.declassifiedBy(each.origin.node && visibleText(each.origin.node))}</bdi>
            <span className="muted">
              <Time at={each.origin.at} />
            </span>
            <span>
              {text.reason}: <bdi>{visibleText(each.reason.slice(0, 2000))}</bdi>
            </span>
            <Button kind="quiet" onClick={() => setQuery({ checkpoint: each.origin.checkpoint_id })}>
              {text.atCheckpoint}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
