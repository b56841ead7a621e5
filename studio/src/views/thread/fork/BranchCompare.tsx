import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import type { CheckpointTree, TreeCheckpoint } from "../../../api/types.ts";
import { Link } from "../../../app/Link.tsx";
import { hrefOf } from "../../../app/location.ts";
import { type Branch, pairBranches, type StepPair } from "../../../pure/branches.ts";
import { type Change, realChanges } from "../../../pure/first_difference.ts";
import { fork } from "../../../text/fork.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { ChangeList } from "../../../ui/ChangeList.tsx";
import { Failure, Loading } from "../../../ui/Notice.tsx";
import { Time } from "../../../ui/Time.tsx";
import { stepName } from "./BranchSteps.tsx";
import { readDiff } from "./make_test.ts";

interface BranchCompareProps {
  tree: CheckpointTree;
  branches: Branch[];
  left: Branch;
  right: Branch;
}

/** How many pairs of steps are compared before the page gives up, and how many it shows. */
const PAIRS_MAX = 100;

/** Two branches side by side, step by step, with the first difference marked. */
export function BranchCompare({ tree, branches, left, right }: BranchCompareProps) {
  const [from, to] = [left.tip.checkpoint_id, right.tip.checkpoint_id];
  const pair = useMemo(() => pairBranches(tree, from, to), [tree, from, to]);
  const steps = pair.steps.slice(0, PAIRS_MAX);
  const search = useQuery({
    queryKey: ["first-difference", tree.thread_id, from, to],
    queryFn: ({ signal }) => findDifference(tree.thread_id, steps, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const nameOf = (branch: Branch) => fork.branch(branches.indexOf(branch) + 1);
  const found = search.data;
  return (
    <section className="card stack" aria-labelledby="branch-comparison">
      <h3 id="branch-comparison">{fork.comparison(nameOf(left), nameOf(right))}</h3>
      <p className="muted">{pair.common ? fork.commonStep(pair.common.step) : fork.noCommon}</p>
      {search.error && <Failure error={search.error} onRetry={() => void search.refetch()} />}
      {search.isPending && <Loading what={fork.loadingDifference} />}
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">{nameOf(left)}</th>
              <th scope="col">{nameOf(right)}</th>
            </tr>
          </thead>
          <tbody>
            {steps.map((step, place) => (
              <PairRow
                key={place}
                tree={tree}
                step={step}
                changes={found?.place === place ? found.changes : undefined}
              />
            ))}
          </tbody>
        </table>
      </div>
      {found && found.place < 0 && (
        <p>{pair.steps.length > PAIRS_MAX ? fork.notLooked(PAIRS_MAX) : fork.noDifference}</p>
      )}
      <p>
        <Link href={hrefOf(["threads", tree.thread_id], { checkpoint: to, compare: from })}>
          {fork.compareAll}
        </Link>
      </p>
    </section>
  );
}

interface FoundDifference {
  /** The place of the pair; -1 if none differs. */
  place: number;
  changes: Change[];
}

async function findDifference(
  thread: string,
  steps: StepPair[],
  signal: AbortSignal,
): Promise<FoundDifference> {
  for (const [place, { left, right }] of steps.entries()) {
    // A step that only one branch has is a difference without values.
    if (!left || !right) return { place, changes: [] };
    const diff = await readDiff(thread, left.checkpoint_id, right.checkpoint_id, signal);
    const changes = realChanges(diff.changes);
    if (changes.length > 0) return { place, changes };
  }
  return { place: -1, changes: [] };
}

interface PairRowProps {
  tree: CheckpointTree;
  step: StepPair;
  /** What differs first, if it differs here. */
  changes: Change[] | undefined;
}

function PairRow({ tree, step, changes }: PairRowProps) {
  const isFirst = changes !== undefined;
  return (
    <>
      <tr data-first={isFirst}>
        <StepCell tree={tree} checkpoint={step.left} isFirst={isFirst} />
        <StepCell tree={tree} checkpoint={step.right} />
      </tr>
      {changes && changes.length > 0 && (
        <tr data-first>
          <td colSpan={2}>
            <ChangeList changes={changes} />
          </td>
        </tr>
      )}
    </>
  );
}

interface StepCellProps {
  tree: CheckpointTree;
  checkpoint: TreeCheckpoint | undefined;
  isFirst?: boolean;
}

function StepCell({ tree, checkpoint, isFirst = false }: StepCellProps) {
  return (
    <td>
      {isFirst && <Badge tone="warn">{fork.firstDifference}</Badge>}
      {checkpoint ? (
        <div>
          <Link href={hrefOf(["threads", tree.thread_id], { checkpoint: checkpoint.checkpoint_id })}>
            <bdi>{stepName(tree, checkpoint)}</bdi>
          </Link>{" "}
          <span className="muted small">
            <Time at={checkpoint.created_at} />
          </span>
        </div>
      ) : (
        <span className="muted">{fork.noStep}</span>
      )}
    </td>
  );
}
