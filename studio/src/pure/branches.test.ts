import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { CheckpointTree, TreeCheckpoint } from "../api/types.ts";
import { branchesOf, nodesOf, pairBranches, pathTo } from "./branches.ts";

type Source = TreeCheckpoint["source"];

/** A tree of checkpoints `[parent, source]`; the ids are their places. */
function treeOf(rows: [number | null, Source?][], current = rows.length - 1): CheckpointTree {
  const id = (at: number) => String(at).padStart(4, "0");
  const checkpoints = rows.map(([parent, source], at) => ({
    checkpoint_id: id(at),
    parent_checkpoint_id: parent === null ? null : id(parent),
    source: source ?? "loop",
    step: at,
    next: [`node${at}`],
    run_id: "run",
    created_at: "2026-01-01T00:00:00Z",
    is_on_current_branch: true,
  }));
  return {
    thread_id: "t",
    current: id(current),
    checkpoints: checkpoints.reverse(),
    branches: [],
    is_complete: true,
  };
}

const ids = (checkpoints: (TreeCheckpoint | undefined)[]) => checkpoints.map((one) => one?.checkpoint_id);

describe("branches", () => {
  it("takes the oldest continuation as the branch itself", () => {
    const tree = treeOf([[null], [0], [1], [1, "fork"], [3], [0, "fork"]]);
    const found = branchesOf(tree).map((branch) => [
      ids(branch.own),
      branch.forkedFrom?.checkpoint_id,
      branch.depth,
      branch.isCurrent,
    ]);
    expect(found).toEqual([
      [["0000", "0001", "0002"], undefined, 0, false],
      [["0005"], "0000", 1, true],
      [["0003", "0004"], "0001", 1, false],
    ]);
  });

  it("pairs the steps after the fork, without the checkpoint that begins it", () => {
    const tree = treeOf([[null], [0], [1], [2], [1, "fork"], [4]]);
    const { common, steps } = pairBranches(tree, "0003", "0005");
    expect(common?.checkpoint_id).toBe("0001");
    expect(steps.map(({ left, right }) => ids([left, right]))).toEqual([
      ["0002", "0005"],
      ["0003", undefined],
    ]);
  });

  it("shows an edit alone", () => {
    const tree = treeOf([[null], [0], [1], [1, "update"], [3]]);
    const { steps } = pairBranches(tree, "0002", "0004");
    expect(steps.map(({ left, right }) => ids([left, right]))).toEqual([
      [undefined, "0003"],
      ["0002", "0004"],
    ]);
  });

  it("names the nodes that wrote a checkpoint", () => {
    const tree = treeOf([[null, "input"], [0]]);
    expect(tree.checkpoints.map((one) => nodesOf(tree, one))).toEqual([["node0"], []]);
  });

  it("puts every checkpoint into exactly one branch, whatever the tree is", () => {
    const rows = fc
      .array(fc.nat(), { minLength: 1, maxLength: 60 })
      .map((picks) => picks.map((pick, at): [number | null] => [at === 0 ? null : pick % at]));
    fc.assert(
      fc.property(rows, (shape) => {
        const tree = treeOf(shape);
        const branches = branchesOf(tree);
        const all = branches.flatMap((branch) => ids(branch.own));
        expect(new Set(all).size).toBe(all.length);
        expect(all.length).toBe(tree.checkpoints.length);
        const leaves = tree.checkpoints.filter(
          (one) => !tree.checkpoints.some((other) => other.parent_checkpoint_id === one.checkpoint_id),
        );
        expect(ids(branches.map(({ tip }) => tip)).sort()).toEqual(ids(leaves).sort());
        for (const branch of branches) {
          const path = ids(pathTo(tree, branch.tip.checkpoint_id));
          expect(path.slice(path.length - branch.own.length)).toEqual(ids(branch.own));
        }
      }),
    );
  });
});
