/** What the pane of a state shows besides the values: what changed, which labels there are, which subgraphs are open. */

import type { Json } from "../api/json.ts";
import type { StateDiff, StateLabels, ThreadState, TreeCheckpoint } from "../api/types.ts";
import { pointersAround, valueAt } from "./json_tree.ts";

/** Returns the places of the state that a step wrote. Those that it removed are not in the state. */
export function changedPointers(changes: StateDiff["changes"], values: Json): ReadonlySet<string> {
  const changed = new Set<string>();
  for (const change of changes) {
    if (change.subgraph === undefined && "after" in change && valueAt(values, change.path) !== undefined) {
      changed.add(change.path);
    }
  }
  return changed;
}

export type LabeledValue = StateLabels["values"][number];

export interface LabelMarks {
  labels: ReadonlyMap<string, readonly string[]>;
  /** What is known about the labels, by the pointer at which they are shown. */
  values: ReadonlyMap<string, readonly LabeledValue[]>;
}

/** Returns labels by where they are shown. A labeled value may be stored deeper than clients see: then it is the value around it. */
export function labelsByPointer(
  found: StateLabels | undefined,
  exists: (pointer: string) => boolean,
): LabelMarks {
  const labels = new Map<string, string[]>();
  const values = new Map<string, LabeledValue[]>();
  for (const value of found?.values ?? []) {
    const shown = [...pointersAround(value.path), value.path].findLast(exists) ?? "";
    values.set(shown, [...(values.get(shown) ?? []), value]);
    const known = labels.get(shown) ?? [];
    labels.set(shown, [...known, ...value.labels.filter((label) => !known.includes(label))]);
  }
  return { labels, values };
}

/** Returns the labeled values at a place and inside of it. */
export function labeledInside(
  marks: LabelMarks,
  pointer: string,
): { here: LabeledValue[]; inside: LabeledValue[] } {
  const here = [...(marks.values.get(pointer) ?? [])];
  const inside: LabeledValue[] = [];
  for (const [at, values] of marks.values) if (at.startsWith(`${pointer}/`)) inside.push(...values);
  return { here, inside };
}

/** Returns how many supersteps are between two checkpoints of a branch; `undefined` if one of them is not on it. */
export function stepsBetween(
  branch: readonly TreeCheckpoint[],
  from: string,
  to: string,
): number | undefined {
  const place = (id: string) => branch.findIndex((each) => each.checkpoint_id === id);
  const [first, last] = [place(from), place(to)];
  return first < 0 || last < 0 ? undefined : last - first;
}

export interface SubgraphState {
  /** The nodes on the way to it, with a number if there are several. */
  name: string;
  values: Json;
}

/** Returns the states of the subgraphs that a thread is inside of. */
export function openSubgraphs(state: ThreadState): SubgraphState[] {
  const found: SubgraphState[] = [];
  const add = (inner: ThreadState, path: string) => {
    for (const task of inner.tasks) {
      if (!task.state) continue;
      const name = path ? `${path}/${task.name}` : task.name;
      const before = found.filter((each) => each.name === name || each.name.startsWith(`${name} #`)).length;
      found.push({ name: before ? `${name} #${before + 1}` : name, values: task.state.values as Json });
      add(task.state, name);
    }
  };
  add(state, "");
  return found;
}
