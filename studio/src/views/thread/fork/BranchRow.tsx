import { useMutation, useQuery } from "@tanstack/react-query";

import type { CheckpointTree, Thread } from "../../../api/types.ts";
import { Link } from "../../../app/Link.tsx";
import { hrefOf } from "../../../app/location.ts";
import { useMay } from "../../../app/me.ts";
import type { Branch } from "../../../pure/branches.ts";
import { realChanges } from "../../../pure/first_difference.ts";
import { fork } from "../../../text/fork.ts";
import { Badge, type Tone } from "../../../ui/Badge.tsx";
import { Button } from "../../../ui/Button.tsx";
import { Failure } from "../../../ui/Notice.tsx";
import { Time } from "../../../ui/Time.tsx";
import type { PaneProps } from "../pane.ts";
import { BranchSteps } from "./BranchSteps.tsx";
import { makeTest, readDiff } from "./make_test.ts";

interface BranchRowProps extends PaneProps {
  tree: CheckpointTree;
  branch: Branch;
  place: number;
  isChosen: boolean;
  /** `undefined` if there is nothing to compare with. */
  onChoose: (() => void) | undefined;
  onFork: (checkpoint: string) => void;
}

export function BranchRow({ thread, tree, branch, place, isChosen, onChoose, onFork }: BranchRowProps) {
  const name = fork.branch(place);
  const [end, tone] = endOf(branch, thread);
  const { tip, forkedFrom, own, depth } = branch;
  return (
    <li
      className="card stack branch"
      data-current={branch.isCurrent}
      style={{ marginInlineStart: `${Math.min(depth, 6) * 1.5}rem` }}
    >
      <div className="row">
        <h3>{name}</h3>
        {branch.isCurrent && <Badge tone="accent">{fork.current}</Badge>}
        <Badge tone={tone}>
          <bdi>{end}</bdi>
        </Badge>
        <span className="muted small">
          <Time at={tip.created_at} />
        </span>
        <span className="spacer" />
        {onChoose && (
          <label className="row">
            <input type="checkbox" checked={isChosen} onChange={onChoose} aria-label={fork.compareOf(name)} />
            <span aria-hidden="true">{fork.compareThis}</span>
          </label>
        )}
      </div>
      <p className="muted small">
        {forkedFrom ? fork.forkedAt(forkedFrom.step) : fork.beginning} · {fork.steps(own.length)}
        {forkedFrom && (
          <Changes thread={thread.thread_id} from={forkedFrom.checkpoint_id} to={tip.checkpoint_id} />
        )}
      </p>
      <BranchActions thread={thread} branch={branch} name={name} onFork={onFork} />
      <BranchSteps tree={tree} branch={branch} thread={thread.thread_id} onFork={onFork} />
    </li>
  );
}

function endOf({ tip, isCurrent }: Branch, thread: Thread): [string, Tone] {
  if (isCurrent && thread.status === "busy") return [fork.ends.running, "accent"];
  if (isCurrent && thread.status === "error") return [fork.ends.failed, "bad"];
  if (isCurrent && Object.keys(thread.interrupts ?? {}).length > 0) return [fork.ends.waits, "warn"];
  return tip.next.length === 0 ? [fork.ends.finished, "good"] : [fork.ends.stopped(tip.next), "plain"];
}

/** How much changed on a branch. Checkpoints never change, so it is asked once. */
function Changes({ thread, from, to }: { thread: string; from: string; to: string }) {
  const diff = useQuery({
    queryKey: ["diff", thread, from, to],
    queryFn: ({ signal }) => readDiff(thread, from, to, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!diff.data) return null;
  return ` · ${fork.changes(realChanges(diff.data.changes).length)}`;
}

interface BranchActionsProps extends Pick<BranchRowProps, "thread" | "branch" | "onFork"> {
  name: string;
}

function BranchActions({ thread, branch, name, onFork }: BranchActionsProps) {
  const may = useMay();
  const tip = branch.tip.checkpoint_id;
  const making = useMutation({ mutationFn: () => makeTest(thread.thread_id, tip) });
  const checkpoint = branch.isCurrent ? undefined : tip;
  return (
    <>
      <div className="row">
        <Link
          className="button"
          href={hrefOf(["threads", thread.thread_id], { checkpoint })}
          aria-label={fork.openOf(name)}
        >
          {fork.open}
        </Link>
        {may("run") && (
          <Button onClick={() => onFork(tip)} aria-label={fork.forkHereOf(name)}>
            {fork.forkHere}
          </Button>
        )}
        <Button
          disabled={making.isPending}
          onClick={() => making.mutate()}
          aria-label={fork.makeTestOf(name)}
        >
          {fork.makeTest}
        </Button>
        <span role="status" className="muted small">
          {making.isPending && fork.making}
          {making.data && fork.made(making.data.name, making.data.lost)}
        </span>
      </div>
      {making.error && <Failure error={making.error} onRetry={() => making.mutate()} />}
    </>
  );
}
