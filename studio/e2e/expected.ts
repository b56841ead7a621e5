/** What the page must show of a thread, by the log alone. */

import type { Json, JsonObject } from "../src/api/json.ts";
import type { ReadCall, ReadCheckpoint, ReadLog } from "./log_reading.ts";
import type { ShownBranch, ShownChange, ShownSpan } from "./screen.ts";

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  canonical(one) === canonical(other);

function canonical(value: Json | undefined): string {
  if (value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort();
  return `{${fields.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`;
}

interface Change {
  path: string[];
  subgraph?: string;
  before?: Json;
  after?: Json;
}

/** Where two checkpoints differ, in the state of the graph and of its subgraphs. */
export function stateDifferences(before: ReadCheckpoint | undefined, after: ReadCheckpoint): Change[] {
  const names = new Set([...(before?.subgraphs ?? []), ...after.subgraphs].map(({ name }) => name));
  const changes = differences(before?.values ?? {}, after.values);
  for (const name of names) {
    const [one, other] = [before, after].map((at) =>
      (at?.subgraphs ?? []).filter((each) => each.name === name),
    );
    changes.push(...invocationChanges(name, one ?? [], other ?? []));
  }
  return changes;
}

type Invocation = ReadCheckpoint["subgraphs"][number];

/** Invocations are the same if their tasks are; those that have no counterpart are paired in order. */
function invocationChanges(name: string, one: Invocation[], other: Invocation[]): Change[] {
  const left = [...other];
  const isKnown = ({ tasks }: Invocation) => one.some((each) => each.tasks === tasks);
  const pairs = one.map((each): [Invocation | undefined, Invocation | undefined] => {
    const same = left.findIndex(({ tasks }) => tasks === each.tasks);
    const place = same >= 0 ? same : left.findIndex((free) => !isKnown(free));
    return [each, place >= 0 ? left.splice(place, 1)[0] : undefined];
  });
  pairs.push(...left.map((only): [undefined, Invocation] => [undefined, only]));
  const isOneOfSeveral = Math.max(one.length, other.length) > 1;
  return pairs.flatMap(([before, after], at) => {
    const subgraph = isOneOfSeveral ? `${name}#${at + 1}` : name;
    return differences(before?.values, after?.values).map((change) => ({ ...change, subgraph }));
  });
}

/** The rules of the page: fields by name; lists by the ids of their items if all have one, else by place if they are as long, else whole. */
export function differences(
  before: Json | undefined,
  after: Json | undefined,
  path: string[] = [],
): Change[] {
  if (isSame(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => differences(before[name], after[name], [...path, name]));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const [one, other] = [idsOf(before), idsOf(after)];
    if (
      one &&
      other &&
      isSame(
        one.filter((id) => other.includes(id)),
        other.filter((id) => one.includes(id)),
      )
    ) {
      const removed = before.flatMap((item, at) =>
        other.includes(one[at] ?? "") ? [] : [{ path: [...path, String(at)], before: item }],
      );
      const rest = after.flatMap((item, at) => {
        const place = one.indexOf(other[at] ?? "");
        return differences(place < 0 ? undefined : before[place], item, [...path, String(at)]);
      });
      return [...removed, ...rest];
    }
    if (before.length === after.length)
      return after.flatMap((item, at) => differences(before[at], item, [...path, String(at)]));
  }
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
}

function idsOf(list: Json[]): string[] | undefined {
  const ids = list.map((item) => (isObject(item) && typeof item.id === "string" ? item.id : undefined));
  const known = ids.filter((id) => id !== undefined);
  return known.length === list.length && new Set(known).size === list.length ? known : undefined;
}

/** Differences as the page names them. */
export function shownChanges(changes: Change[]): ShownChange[] {
  return sorted(
    changes.map(({ path, ...values }) => ({ path: path.join(" › ") || "all of the state", ...values })),
  );
}

export function sorted(changes: ShownChange[]): ShownChange[] {
  const key = ({ subgraph, path, before }: ShownChange) =>
    `${subgraph ?? ""}\n${path}\n${before === undefined}`;
  return changes.toSorted((one, other) => (key(one) < key(other) ? -1 : 1));
}

/** JSON Pointers to what a step wrote, as far as it is still there. */
export function writtenPointers(changes: Change[]): string[] {
  const written = changes.filter((change) => "after" in change && change.subgraph === undefined);
  return written
    .map(({ path }) => path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""))
    .sort();
}

/** The labels in a state, by JSON Pointer. */
export function labelsIn(checkpoint: ReadCheckpoint): Record<string, string[]> {
  const facts = checkpoint.values.facts as { labels: string[] }[] | undefined;
  const labeled = (facts ?? []).map(({ labels }, at) => [`/facts/${at}`, labels] as const);
  return Object.fromEntries(labeled.filter(([, labels]) => labels.length > 0));
}

/** The checkpoints up to one, the oldest first. */
export function pathTo(checkpoint: ReadCheckpoint): ReadCheckpoint[] {
  const path: ReadCheckpoint[] = [];
  for (let at: ReadCheckpoint | undefined = checkpoint; at; at = at.parent) path.unshift(at);
  return path;
}

/** The branches, each below the one that it left: the first continuation of a checkpoint is the branch itself. */
export function branchesIn(log: ReadLog, endOf: (tip: ReadCheckpoint) => string): ShownBranch[] {
  const followers = (of: ReadCheckpoint | undefined) => log.checkpoints.filter(({ parent }) => parent === of);
  const branches: ShownBranch[] = [];
  const draw = (first: ReadCheckpoint, depth: number): void => {
    const own = [first];
    for (let next = followers(first)[0]; next; next = followers(next)[0]) own.push(next);
    const tip = own.at(-1) ?? first;
    branches.push({
      depth,
      isCurrent: tip === log.current,
      end: endOf(tip),
      from: first.parent ? `Forked after step ${first.parent.step}` : "From the beginning",
      checkpoints: own.length,
    });
    for (const each of own) for (const fork of followers(each).slice(1)) draw(fork, depth + 1);
  };
  for (const root of followers(undefined)) draw(root, 0);
  return branches;
}

const number = (value: Json | undefined): number | undefined =>
  typeof value === "number" ? value : undefined;
const count = (value: number | undefined) => (value === undefined ? "?" : value.toLocaleString("en"));

export function dollars(nano: number): string {
  return `$${Number((nano / 1e9).toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 })}`;
}

/** Sums over model calls, as the page words them. */
export function costOf(calls: ReadCall[]): { cost: string; input: number; output: number; models: number } {
  const models = calls.filter(({ kind }) => kind === "model");
  const sum = (name: string) => models.reduce((all, { fields }) => all + (number(fields[name]) ?? 0), 0);
  const nano = sum("superstep.cost_nano_dollars");
  const isUnknown = models.some(({ fields }) => fields["superstep.cost_nano_dollars"] === undefined);
  const known = isUnknown && nano === 0 ? "cost unknown" : `${isUnknown ? "at least " : ""}${dollars(nano)}`;
  return {
    cost: known,
    input: sum("gen_ai.usage.input_tokens"),
    output: sum("gen_ai.usage.output_tokens"),
    models: models.length,
  };
}

/** The rows of calls in a trace, in no particular order. */
export function callRows(calls: ReadCall[]): ShownSpan[] {
  return sortedRows(
    calls.map(({ kind, fields }) => {
      if (kind === "tool")
        return {
          kind,
          name: String(fields["gen_ai.tool.name"]),
          toolClass: String(fields["superstep.tool.class"]),
          tokens: "",
          cost: "",
        };
      const [input, output] = [
        number(fields["gen_ai.usage.input_tokens"]),
        number(fields["gen_ai.usage.output_tokens"]),
      ];
      const cost = number(fields["superstep.cost_nano_dollars"]);
      return {
        kind,
        name: String(fields["gen_ai.request.model"]),
        toolClass: "",
        tokens:
          input === undefined && output === undefined
            ? "unknown"
            : `${count(input)} in, ${count(output)} out`,
        cost: cost === undefined ? "cost unknown" : dollars(cost),
      };
    }),
  );
}

export function sortedRows(rows: ShownSpan[]): ShownSpan[] {
  return rows.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
