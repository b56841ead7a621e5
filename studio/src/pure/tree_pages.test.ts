import fc from "fast-check";
import { expect, test } from "vitest";

import type { CheckpointTree, TreeCheckpoint } from "../api/types.ts";
import { appendPage, joinTree } from "./tree_pages.ts";

const nameOf = (at: number) => `c${String(at).padStart(4, "0")}`;

/** A thread whose checkpoints follow these ones: each an older one, or none. */
class Log {
  readonly parents: number[];

  constructor(parents: number[]) {
    this.parents = parents;
  }

  get size(): number {
    return this.parents.length;
  }

  until(size: number): Log {
    return new Log(this.parents.slice(0, size));
  }

  /** What the server answers. */
  page(limit: number, before?: string): CheckpointTree {
    const current = this.size - 1;
    const branch = new Set<number>();
    for (let at = current; at >= 0; at = this.parents[at] ?? -1) branch.add(at);
    const all = this.parents.map((parent, at) => ({
      checkpoint_id: nameOf(at),
      parent_checkpoint_id: parent < 0 ? null : nameOf(parent),
      created_at: `at ${at}`,
      is_on_current_branch: branch.has(at),
    })) as TreeCheckpoint[];
    const older = all.filter((each) => before === undefined || each.checkpoint_id < before).reverse();
    return {
      thread_id: "t",
      current: nameOf(current),
      checkpoints: older.slice(0, limit),
      branches: [],
      is_complete: older.length <= limit,
    };
  }

  get all(): CheckpointTree {
    return this.page(Number.POSITIVE_INFINITY);
  }
}

const logs = fc
  .array(fc.nat(), { minLength: 1, maxLength: 40 })
  .map(
    (choices) => new Log(choices.map((choice, at) => (choice % 3 > 0 ? at - 1 : (choice % (at + 1)) - 1))),
  );

/** Loads what is missing, page after page. */
function loadOlder(log: Log, tree: CheckpointTree, limit: number): CheckpointTree {
  let loaded = tree;
  while (!loaded.is_complete) {
    const before = loaded.checkpoints.at(-1)?.checkpoint_id ?? "";
    loaded = appendPage(loaded, before, log.page(limit, before));
  }
  return loaded;
}

test("pages join to the tree", () => {
  fc.assert(
    fc.property(logs, fc.integer({ min: 1, max: 10 }), (log, limit) => {
      expect(loadOlder(log, log.page(limit), limit)).toEqual(log.all);
    }),
  );
});

test("what is known joins what was written since, or is forgotten", () => {
  fc.assert(
    fc.property(logs, fc.nat(), fc.integer({ min: 1, max: 10 }), (log, part, limit) => {
      const before = log.until(1 + (part % log.size));
      const newest = log.page(limit);
      const joined = joinTree(newest, before.all);
      // They meet if the page goes back to what is known.
      expect(joined !== undefined).toBe(log.size <= limit || log.size - before.size < limit);
      expect(loadOlder(log, joined ?? newest, limit)).toEqual(log.all);
    }),
  );
});

test("a tree in which nothing changed stays the same object", () => {
  const log = new Log(Array.from({ length: 20 }, (_, at) => at - 1));
  const { all } = log;
  expect(joinTree(log.page(5), all)).toBe(all);
  expect(joinTree(new Log([...log.parents, 3]).page(5), all)).not.toBe(all);
});

test("a page of a tree that was read again is dropped", () => {
  const log = new Log(Array.from({ length: 20 }, (_, at) => at - 1));
  const page = log.page(5, nameOf(15));
  const other = log.page(7);
  expect(appendPage(other, nameOf(15), page)).toBe(other);
});

test("a thread with the same ids and other times is another one", () => {
  const log = new Log(Array.from({ length: 20 }, (_, at) => at - 1));
  const checkpoints = log.all.checkpoints.map((each) => ({ ...each, created_at: "another time" }));
  expect(joinTree(log.page(5), { ...log.all, checkpoints })).toBeUndefined();
});
