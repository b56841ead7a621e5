import fc from "fast-check";
import { expect, test } from "vitest";

import type { CheckpointTree, ThreadTrace, TraceSpan } from "../api/types.ts";
import { stepsUntil } from "./graph_activity.ts";

/** Random trees: each checkpoint follows one of those before it, and any of them is the current one. */
const trees = fc
  .array(fc.nat(), { minLength: 3, maxLength: 30 })
  .chain((choices) => fc.record({ choices: fc.constant(choices), current: fc.nat(choices.length - 1) }))
  .map(({ choices, current }) => {
    const id = (place: number) => `c${place}`;
    // The first two are the input and the checkpoint that it makes, without a superstep.
    const parents = choices.map((choice, place) => (place < 2 ? place - 1 : 1 + (choice % (place - 1))));
    const checkpoints = parents.map((parent, place) => ({
      checkpoint_id: id(place),
      parent_checkpoint_id: parent < 0 ? null : id(parent),
      source: place === 0 ? ("input" as const) : ("loop" as const),
      // Two of them are in the same millisecond.
      created_at: new Date(Math.floor(place / 2)).toISOString(),
    }));
    return { parents, current, checkpoints };
  });

test("the steps until a checkpoint are those that made it and the ones that lead to it, whatever is current", () => {
  fc.assert(
    fc.property(trees, fc.nat(), ({ parents, current, checkpoints }, choice) => {
      const selected = choice % parents.length;
      const tree = {
        current: `c${current}`,
        checkpoints: checkpoints.toReversed(),
        is_complete: true,
      } as unknown as CheckpointTree;
      const made = checkpoints.slice(2);
      const spans = made.map(({ checkpoint_id, created_at }) => ({
        span_id: checkpoint_id,
        kind: "superstep",
        started_at: created_at,
        ended_at: created_at,
      }));
      const trace = { runs: [{ spans }] } as unknown as ThreadTrace;
      const expected: string[] = [];
      for (let at = selected; at >= 2; at = parents[at] ?? -1) expected.unshift(`c${at}`);
      // The cache must not depend on what was asked for before.
      for (const ask of [selected, current, selected]) stepsUntil(trace, tree, `c${ask}`);
      const found = stepsUntil(trace, tree, `c${selected}`);
      expect(found.map(({ span }: { span: TraceSpan }) => span.span_id)).toEqual(expected);
    }),
  );
});
