import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { ApiProblem } from "../../../api/client.ts";
import { treeQuery } from "../../../api/queries.ts";
import { setQuery, usePageLocation } from "../../../app/location.ts";
import { type Branch, branchesOf } from "../../../pure/branches.ts";
import { fork } from "../../../text/fork.ts";
import { Button } from "../../../ui/Button.tsx";
import { Failure, Loading, Notice } from "../../../ui/Notice.tsx";
import type { PaneProps } from "../pane.ts";
import { BranchCompare } from "./BranchCompare.tsx";
import { BranchRow } from "./BranchRow.tsx";
import { ForkDialog } from "./ForkDialog.tsx";
import "./fork.css";

/** How many branches are shown at first, and how many more each time. */
const PAGE = 50;

/** The branches of a thread as a tree, and two of them side by side. */
export function BranchesPane(props: PaneProps) {
  const tree = useQuery(treeQuery(props.thread.thread_id));
  const branches = useMemo(() => (tree.data ? branchesOf(tree.data) : []), [tree.data]);
  const [shown, setShown] = useState(PAGE);
  const [forkAt, setForkAt] = useState<string>();
  const [chosen, choose] = useChosen(branches);
  // A thread without a run has no graph, so it has no tree.
  const isEmpty = tree.error instanceof ApiProblem && tree.error.status === 404;
  if (isEmpty || tree.data?.checkpoints.length === 0) return <Empty />;
  if (tree.error && !tree.data) return <Failure error={tree.error} onRetry={() => void tree.refetch()} />;
  if (!tree.data) return <Loading what={fork.loadingBranches} />;
  const [left, right] = chosen;
  return (
    <section className="stack" aria-label={fork.branches}>
      <p className="muted">{branches.length === 1 ? fork.oneBranch : fork.chooseTwo}</p>
      {!tree.data.is_complete && (
        <p className="muted small">{fork.incomplete(tree.data.checkpoints.length)}</p>
      )}
      <ol className="stack branch-list">
        {branches.slice(0, shown).map((branch, place) => (
          <BranchRow
            key={branch.own[0]?.checkpoint_id}
            {...props}
            tree={tree.data}
            branch={branch}
            place={place + 1}
            isChosen={chosen.includes(branch)}
            onChoose={branches.length > 1 ? () => choose(branch) : undefined}
            onFork={setForkAt}
          />
        ))}
      </ol>
      {branches.length > shown && (
        <Button onClick={() => setShown(shown + PAGE)}>
          {fork.showMore(Math.min(PAGE, branches.length - shown))}
        </Button>
      )}
      {left && right && <BranchCompare tree={tree.data} branches={branches} left={left} right={right} />}
      {forkAt && <ForkDialog {...props} checkpoint={forkAt} isOpen onClose={() => setForkAt(undefined)} />}
    </section>
  );
}

function Empty() {
  return (
    <Notice title={fork.emptyTitle}>
      <p>{fork.emptyNext}</p>
    </Notice>
  );
}

/** The branches to compare, at most two: the address names them by their first checkpoints, which stay while they grow. */
function useChosen(branches: Branch[]): [Branch[], (branch: Branch) => void] {
  const { query } = usePageLocation();
  const names = (query.get("branches") ?? "").split(",").filter(Boolean);
  const nameOf = (branch: Branch) => branch.own[0]?.checkpoint_id ?? "";
  const chosen = names.flatMap((name) => branches.find((branch) => nameOf(branch) === name) ?? []);
  const choose = (branch: Branch) => {
    const others = chosen.filter((each) => each !== branch);
    const next = others.length < chosen.length ? others : [...chosen.slice(-1), branch];
    setQuery({ branches: next.map(nameOf).join(",") });
  };
  return [chosen, choose];
}
