import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { interruptsQuery } from "../../../api/queries.ts";
import type { CheckpointTree, TreeCheckpoint } from "../../../api/types.ts";
import { Link } from "../../../app/Link.tsx";
import { hrefOf } from "../../../app/location.ts";
import { useMay } from "../../../app/me.ts";
import { type Branch, nodesOf } from "../../../pure/branches.ts";
import { checkpointsAt } from "../../../pure/timeline.ts";
import { fork } from "../../../text/fork.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Button } from "../../../ui/Button.tsx";
import { Time } from "../../../ui/Time.tsx";

interface BranchStepsProps {
  tree: CheckpointTree;
  branch: Branch;
  thread: string;
  onFork: (checkpoint: string) => void;
}

const PAGE = 50;

/** The checkpoints of a branch, the newest first, each with a way to fork there. Drawn when they are opened. */
export function BranchSteps({ tree, branch, thread, onFork }: BranchStepsProps) {
  const [isOpen, setOpen] = useState(false);
  const [shown, setShown] = useState(PAGE);
  const may = useMay();
  const { data: interrupts } = useQuery(interruptsQuery(thread));
  const asked = useMemo(() => {
    const times = interrupts?.map(({ asked_at }) => Date.parse(asked_at)) ?? [];
    return checkpointsAt(tree, times);
  }, [tree, interrupts]);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{fork.steps(branch.own.length)}</summary>
      {isOpen && (
        <ol className="branch-steps">
          {branch.own
            .slice(-shown)
            .reverse()
            .map((checkpoint) => (
              <li key={checkpoint.checkpoint_id} className="row">
                <Link href={hrefOf(["threads", thread], { checkpoint: checkpoint.checkpoint_id })}>
                  <bdi>{stepName(tree, checkpoint)}</bdi>
                </Link>
                {asked.has(checkpoint.checkpoint_id) && <Badge tone="warn">{fork.asked}</Badge>}
                <span className="muted small">
                  <Time at={checkpoint.created_at} />
                </span>
                <span className="spacer" />
                {may("run") && (
                  <Button
                    kind="quiet"
                    onClick={() => onFork(checkpoint.checkpoint_id)}
                    aria-label={fork.forkHereOf(stepName(tree, checkpoint))}
                  >
                    {fork.forkHere}
                  </Button>
                )}
              </li>
            ))}
        </ol>
      )}
      {isOpen && branch.own.length > shown && (
        <Button onClick={() => setShown(shown + PAGE)}>
          {fork.showMore(Math.min(PAGE, branch.own.length - shown))}
        </Button>
      )}
    </details>
  );
}

/** A checkpoint in words: its step, and what wrote it. */
export function stepName(tree: CheckpointTree, checkpoint: TreeCheckpoint): string {
  const nodes = nodesOf(tree, checkpoint);
  const what = nodes.length > 0 && checkpoint.step > 0 ? nodes.join(", ") : fork.sources[checkpoint.source];
  return `${fork.at(checkpoint.step)} · ${what}`;
}
