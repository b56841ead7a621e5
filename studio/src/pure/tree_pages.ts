/** The tree of a long thread comes in pages, the newest first. Here they become one tree again. */

import type { CheckpointTree, TreeCheckpoint } from "../api/types.ts";

/**
 * Joins the newest checkpoints with the older ones that are known already; `undefined` if there may be others in between. The log
 * of a thread only grows, so what is known of older checkpoints stays true, apart from the branch that the thread is on.
 */
export function joinTree(
  newest: CheckpointTree,
  known: CheckpointTree | undefined,
): CheckpointTree | undefined {
  const last = newest.checkpoints.at(-1);
  if (newest.is_complete || last === undefined) return newest;
  const at = known?.checkpoints.findIndex(({ checkpoint_id }) => checkpoint_id === last.checkpoint_id) ?? -1;
  // A thread that was deleted and created again has the same ids.
  if (!known || known.checkpoints[at]?.created_at !== last.created_at) return undefined;
  const recent = known.checkpoints.slice(0, at + 1);
  if (newest.current === known.current && isSame(newest.checkpoints, recent)) return known;
  const older = onBranch([...newest.checkpoints, ...known.checkpoints.slice(at + 1)], newest.current);
  return { ...newest, checkpoints: older, is_complete: known.is_complete };
}

/** Adds the page of the checkpoints that are older than the last one of a tree. */
export function appendPage(tree: CheckpointTree, before: string, page: CheckpointTree): CheckpointTree {
  // The tree may have been read again from the beginning since the page was asked for.
  if (tree.checkpoints.at(-1)?.checkpoint_id !== before) return tree;
  // Ids sort like the entries of the log.
  const older = page.checkpoints.filter(({ checkpoint_id }) => checkpoint_id < before);
  const checkpoints = onBranch([...tree.checkpoints, ...older], tree.current);
  return { ...tree, checkpoints, is_complete: page.is_complete };
}

/** Marks the checkpoints that lead to the current one. */
function onBranch(checkpoints: TreeCheckpoint[], current: string | null): TreeCheckpoint[] {
  const parents = new Map(checkpoints.map((each) => [each.checkpoint_id, each.parent_checkpoint_id]));
  const branch = new Set<string>();
  for (let id = current; id !== null && !branch.has(id); id = parents.get(id) ?? null) branch.add(id);
  return checkpoints.map((each) => {
    const isOnBranch = branch.has(each.checkpoint_id);
    return each.is_on_current_branch === isOnBranch ? each : { ...each, is_on_current_branch: isOnBranch };
  });
}

function isSame(one: readonly TreeCheckpoint[], other: readonly TreeCheckpoint[]): boolean {
  return one.length === other.length && JSON.stringify(one) === JSON.stringify(other);
}
