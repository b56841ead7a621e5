/** The branches of a thread, from its tree of checkpoints. */

import type { CheckpointTree, TreeCheckpoint } from "../api/types.ts";

export interface Branch {
  /** Its newest checkpoint, which names the branch. */
  tip: TreeCheckpoint;
  /** Its own checkpoints, the oldest first: those after the fork. */
  own: TreeCheckpoint[];
  /** The checkpoint that it left another branch at. */
  forkedFrom: TreeCheckpoint | undefined;
  depth: number;
  isCurrent: boolean;
}

/** A step of one branch next to the same step of the other. A step that only one of them has stands alone. */
export interface StepPair {
  left: TreeCheckpoint | undefined;
  right: TreeCheckpoint | undefined;
}

export interface BranchPair {
  /** The newest checkpoint that both have. */
  common: TreeCheckpoint | undefined;
  steps: StepPair[];
}

/** The checkpoints of a tree by their ids, computed once for each tree. */
export function checkpointIndex(tree: CheckpointTree): ReadonlyMap<string, TreeCheckpoint> {
  let index = indexes.get(tree);
  if (!index) {
    index = new Map(tree.checkpoints.map((checkpoint) => [checkpoint.checkpoint_id, checkpoint]));
    indexes.set(tree, index);
  }
  return index;
}

const indexes = new WeakMap<CheckpointTree, ReadonlyMap<string, TreeCheckpoint>>();

/**
 * Returns the branches in the order of a drawing: each below the one that it left. The oldest continuation of a checkpoint is
 * the branch itself; the others are forks of it.
 */
export function branchesOf(tree: CheckpointTree): Branch[] {
  const index = checkpointIndex(tree);
  const children = new Map<string, TreeCheckpoint[]>();
  const roots: TreeCheckpoint[] = [];
  // The server lists the newest first. Ids sort like the entries of the log.
  const ordered = [...tree.checkpoints].sort((a, b) => compareText(a.checkpoint_id, b.checkpoint_id));
  for (const checkpoint of ordered) {
    const parent = checkpoint.parent_checkpoint_id;
    if (parent === null || !index.has(parent)) roots.push(checkpoint);
    else children.set(parent, [...(children.get(parent) ?? []), checkpoint]);
  }
  const branches: Branch[] = [];
  const open = roots
    .reverse()
    .map((first) => ({ first, from: undefined as TreeCheckpoint | undefined, depth: 0 }));
  for (let next = open.pop(); next; next = open.pop()) {
    const own: TreeCheckpoint[] = [];
    const forks: TreeCheckpoint[][] = [];
    for (let at: TreeCheckpoint | undefined = next.first; at; ) {
      own.push(at);
      const [same, ...others]: TreeCheckpoint[] = children.get(at.checkpoint_id) ?? [];
      forks.push(others);
      at = same;
    }
    const tip = own.at(-1) ?? next.first;
    const isCurrent = tip.checkpoint_id === tree.current;
    branches.push({ tip, own, forkedFrom: next.from, depth: next.depth, isCurrent });
    // The oldest fork is drawn first, so it is taken from the stack first.
    for (let at = forks.length - 1; at >= 0; at--) {
      for (const first of forks[at]?.toReversed() ?? []) {
        open.push({ first, from: own[at], depth: next.depth + 1 });
      }
    }
  }
  return branches;
}

/** Returns the checkpoints up to one, the oldest first, as far as the tree has them. */
export function pathTo(tree: CheckpointTree, id: string): TreeCheckpoint[] {
  const index = checkpointIndex(tree);
  const path: TreeCheckpoint[] = [];
  for (
    let at = index.get(id);
    at;
    at = at.parent_checkpoint_id ? index.get(at.parent_checkpoint_id) : undefined
  ) {
    path.push(at);
  }
  return path.reverse();
}

/** Returns the steps of two branches after the newest checkpoint that both have, next to each other. */
export function pairBranches(tree: CheckpointTree, left: string, right: string): BranchPair {
  const [leftPath, rightPath] = [pathTo(tree, left), pathTo(tree, right)];
  let shared = 0;
  while (leftPath[shared] && leftPath[shared]?.checkpoint_id === rightPath[shared]?.checkpoint_id) shared++;
  const common = leftPath[shared - 1];
  // The checkpoint that a fork begins with has the state of the one that it left; it is not a step.
  const isStep = (checkpoint: TreeCheckpoint) => checkpoint.source !== "fork";
  const lefts = leftPath.slice(shared).filter(isStep);
  const rights = rightPath.slice(shared).filter(isStep);
  return { common, steps: pairSteps(lefts, rights) };
}

function pairSteps(lefts: TreeCheckpoint[], rights: TreeCheckpoint[]): StepPair[] {
  const steps: StepPair[] = [];
  let [at, other] = [0, 0];
  while (at < lefts.length || other < rights.length) {
    const [left, right] = [lefts[at], rights[other]];
    // An edit has no counterpart on a branch on which nothing was edited.
    const isLeftAlone = left?.source === "update" && right?.source !== "update";
    const isRightAlone = right?.source === "update" && left?.source !== "update";
    if (!isRightAlone) at++;
    if (!isLeftAlone) other++;
    steps.push({ left: isRightAlone ? undefined : left, right: isLeftAlone ? undefined : right });
  }
  return steps;
}

/** Returns the nodes that ran to write a checkpoint: those that were next before it. */
export function nodesOf(tree: CheckpointTree, checkpoint: TreeCheckpoint): string[] {
  if (checkpoint.source !== "loop" || !checkpoint.parent_checkpoint_id) return [];
  return checkpointIndex(tree).get(checkpoint.parent_checkpoint_id)?.next ?? [];
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
