/** Where two results really differ: ids that every run makes anew say nothing. */

import { isObject, type Json } from "../api/json.ts";
import type { StateDiff } from "../api/types.ts";

export type Change = StateDiff["changes"][number];

/** Fields that are new in every run, whatever the run did. */
const IDS = new Set(["id", "tool_call_id"]);

/** Returns the changes without those that only gave something a new id. The order stays. */
export function realChanges(changes: readonly Change[]): Change[] {
  const named = changes.filter(({ path }) => !IDS.has(lastPart(path)));
  // The same item under another id is a removed one and an added one.
  const removed = new Map<string, Change[]>();
  for (const change of named.filter(isRemoval)) {
    const key = contentKey(change, change.before);
    removed.set(key, [...(removed.get(key) ?? []), change]);
  }
  const dropped = new Set<Change>();
  for (const change of named.filter(isAddition)) {
    const same = removed.get(contentKey(change, change.after))?.shift();
    if (same) {
      dropped.add(same);
      dropped.add(change);
    }
  }
  return named.filter((change) => !dropped.has(change) && !isSameButIds(change.before, change.after, change));
}

/** Returns the first place at which two values differ, by a JSON Pointer; `undefined` if they differ in ids alone. */
export function firstDifference(left: Json, right: Json, path = ""): Change | undefined {
  if (Array.isArray(left) && Array.isArray(right)) {
    for (let at = 0; at < Math.max(left.length, right.length); at++) {
      const found = differenceAt(left[at], right[at], `${path}/${at}`);
      if (found) return found;
    }
    return undefined;
  }
  if (isObject(left) && isObject(right)) {
    const names = [...new Set([...Object.keys(left), ...Object.keys(right)])].sort();
    for (const name of names.filter((each) => !IDS.has(each))) {
      const found = differenceAt(own(left, name), own(right, name), `${path}/${escapePart(name)}`);
      if (found) return found;
    }
    return undefined;
  }
  return left === right ? undefined : { path, before: left, after: right };
}

/** Returns text that is the same for values that differ in ids alone. */
export function contentOf(value: unknown): string {
  return JSON.stringify(value, (name, inner: unknown) => {
    if (IDS.has(name)) return undefined;
    return isObject(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner;
  });
}

function differenceAt(left: Json | undefined, right: Json | undefined, path: string): Change | undefined {
  if (left === undefined && right === undefined) return undefined;
  if (left === undefined) return { path, after: right };
  if (right === undefined) return { path, before: left };
  return firstDifference(left, right, path);
}

const isRemoval = (change: Change) => "before" in change && !("after" in change);
const isAddition = (change: Change) => "after" in change && !("before" in change);

function isSameButIds(before: unknown, after: unknown, change: Change): boolean {
  return "before" in change && "after" in change && contentOf(before) === contentOf(after);
}

function contentKey(change: Change, value: unknown): string {
  const list = change.path.slice(0, change.path.lastIndexOf("/"));
  return `${change.subgraph ?? ""}\n${list}\n${contentOf(value)}`;
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A field of the object itself: a state may have a field named `constructor`. */
function own(value: Record<string, Json>, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function escapePart(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

interface Question {
  value: unknown;
}

/**
 * Whether two lists of interrupts ask the same. If the answer lets something happen, the same in every word: nobody has seen
 * anything else. Otherwise as far as an answer to one fits the other, because the texts of models may differ.
 */
export function areSameQuestions(
  before: readonly Question[],
  now: readonly Question[],
  hasEffect: boolean,
): boolean {
  const read = hasEffect ? wordsOf : shapeOf;
  return (
    before.length === now.length && before.every(({ value }, at) => read(value) === read(now[at]?.value))
  );
}

/** Everything that a person reads. Every run makes ids of its own. */
function wordsOf(value: unknown): string {
  return JSON.stringify(value, (name, each) =>
    name === "tool_call_id" || name === "digest" ? undefined : each,
  );
}

function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shapeOf).join()}]`;
  if (!isObject(value)) return typeof value;
  const action = isObject(value.action_request) ? value.action_request.action : value.kind;
  return `${Object.keys(value).sort().join()}:${typeof action === "string" ? action : ""}`;
}
