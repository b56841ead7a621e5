/** Messages of a state, whatever their form is, and what the trace, the interrupts and the labels say about them. */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";
import type {
  CallTotals,
  RaisedInterrupt,
  StateLabels,
  ThreadState,
  ThreadTrace,
  TraceSpan,
} from "../api/types.ts";
import type { LiveMessage, LiveThread } from "./event_fold.ts";

export type Role = "human" | "ai" | "tool" | "system";

export interface ToolCall {
  id: string;
  name: string;
  args: Json;
}

export interface ThreadMessage {
  /** Unique among the messages of its channel. */
  key: string;
  id: string | undefined;
  /** Where it is in the state: a JSON Pointer. */
  pointer: string;
  role: Role;
  text: string;
  reasoning: string;
  /** Kinds of content that are not text, such as images. */
  others: readonly string[];
  calls: readonly ToolCall[];
  /** For a result: the call and the tool that it is of. */
  toolCallId: string | undefined;
  name: string | undefined;
  isError: boolean;
  raw: JsonObject;
}

export interface MessageChannel {
  name: string;
  /** The nodes on the way to the subgraph that has it; empty for the graph itself. */
  subgraph: string;
  messages: readonly ThreadMessage[];
}

const ROLES: ReadonlyMap<string, Role> = new Map<string, Role>([
  ["human", "human"],
  ["user", "human"],
  ["humanmessage", "human"],
  ["ai", "ai"],
  ["assistant", "ai"],
  ["agent", "ai"],
  ["model", "ai"],
  ["aimessage", "ai"],
  ["system", "system"],
  ["developer", "system"],
  ["systemmessage", "system"],
  ["tool", "tool"],
  ["toolmessage", "tool"],
]);

function roleOf(message: JsonObject): Role | undefined {
  for (const field of ["type", "role"]) {
    const name = textOf(message, field)?.toLowerCase();
    const role = name === undefined ? undefined : ROLES.get(name.replace(/chunk$/, ""));
    if (role) return role;
  }
  return undefined;
}

/** Whether a value has the form of a message: a role and content. */
function isMessage(value: Json): value is JsonObject {
  if (!isObject(value) || roleOf(value) === undefined) return false;
  const { content } = value;
  return typeof content === "string" || Array.isArray(content) || (content === null && "tool_calls" in value);
}

// A state is fetched again and again, and what did not change in it is the same object.
const read = new WeakMap<JsonObject, ThreadMessage>();

/** Reads a list of messages; `undefined` if the value is not one. */
export function messagesOf(value: Json | undefined, pointer = ""): ThreadMessage[] | undefined {
  if (!Array.isArray(value) || !value.every(isMessage)) return undefined;
  const keys = new Set<string>();
  return value.map((raw, index) => {
    const id = textOf(raw, "id");
    const key = id !== undefined && !keys.has(id) ? id : `#${index}`;
    keys.add(key);
    return readMessage(raw, key, `${pointer}/${index}`);
  });
}

function readMessage(raw: JsonObject, key: string, pointer: string): ThreadMessage {
  const known = read.get(raw);
  if (known && known.key === key && known.pointer === pointer) return known;
  const blocks = Array.isArray(raw.content) ? raw.content : [];
  const text = typeof raw.content === "string" ? raw.content : blocks.map(blockText).join("");
  const message: ThreadMessage = {
    key,
    id: textOf(raw, "id"),
    pointer,
    role: roleOf(raw) ?? "system",
    text,
    reasoning: textOf(raw.additional_kwargs, "reasoning_content") ?? textOf(raw, "reasoning") ?? "",
    others: blocks.flatMap((block) => {
      const kind = textOf(block, "type");
      return kind === undefined || kind === "text" ? [] : [kind];
    }),
    calls: callsOf(raw),
    toolCallId: textOf(raw, "tool_call_id"),
    name: textOf(raw, "name"),
    isError: raw.status === "error",
    raw,
  };
  read.set(raw, message);
  return message;
}

function blockText(block: Json): string {
  return typeof block === "string" ? block : (textOf(block, "text") ?? "");
}

function callsOf(raw: JsonObject): ToolCall[] {
  const calls = Array.isArray(raw.tool_calls) ? raw.tool_calls : [];
  return calls.filter(isObject).map((call) => ({
    id: textOf(call, "id") ?? "",
    name: textOf(call, "name") ?? textOf(call.function, "name") ?? "",
    args: call.args ?? (isObject(call.function) ? (call.function.arguments ?? {}) : {}),
  }));
}

/**
 * Returns the channels of a state that hold messages, the one called `messages` first. While a run is inside of a subgraph, its
 * messages are in the state of the subgraph only, so they continue the channel of the same name.
 */
export function channelsOf(state: ThreadState | undefined): MessageChannel[] {
  const found: MessageChannel[] = [];
  if (state) collect(state, "", found, 0);
  const rank = (channel: MessageChannel) =>
    (channel.name === "messages" ? 0 : 2) + (channel.subgraph === "" ? 0 : 1);
  return found.sort((one, other) => rank(one) - rank(other));
}

/** Graphs are nested a few levels deep; this is a limit against states that are not ours. */
const DEPTH_MAX = 20;

function collect(state: ThreadState, subgraph: string, found: MessageChannel[], depth: number): void {
  const values = state.values as Json;
  for (const [name, value] of Object.entries(isObject(values) ? values : {})) {
    const messages = messagesOf(value, `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
    // An empty list may be of anything, unless its name says what it is for.
    if (!messages || (messages.length === 0 && name !== "messages")) continue;
    const outer = found.find((channel) => channel.name === name);
    if (outer) outer.messages = continued(outer.messages, messages);
    else found.push({ name, subgraph, messages });
  }
  if (depth >= DEPTH_MAX) return;
  for (const task of state.tasks ?? []) {
    if (task.state) collect(task.state, subgraph ? `${subgraph}/${task.name}` : task.name, found, depth + 1);
  }
}

function continued(outer: readonly ThreadMessage[], inner: ThreadMessage[]): readonly ThreadMessage[] {
  const known = new Set(outer.map(({ key }) => key));
  const added = inner.filter(({ id, key }) => id !== undefined && !known.has(key));
  return added.length === 0 ? outer : [...outer, ...added];
}

export type Entry =
  | { kind: "stored"; key: string; message: ThreadMessage; results: ReadonlyMap<string, ThreadMessage> }
  | { kind: "live"; key: string; message: LiveMessage };

/** Returns a conversation: what the state has, what is being written, and what was replaced, in the order of a reader. */
export function conversationOf(
  stored: readonly ThreadMessage[],
  live: LiveThread | undefined,
  isSettled: boolean,
): Entry[] {
  const ids = new Set(stored.map(({ id }) => id));
  return [...storedEntries(stored, replacedOf(live)), ...liveEntries(ids, live, isSettled)];
}

/** Returns the versions of messages that were replaced. */
export function replacedOf(live: LiveThread | undefined): LiveMessage[] {
  return live?.messages.filter(({ status }) => status === "replaced") ?? [];
}

/** Returns stored messages, each after its replaced versions. Results are part of the message that made the call. */
export function storedEntries(stored: readonly ThreadMessage[], replaced: readonly LiveMessage[]): Entry[] {
  const called = new Set(stored.flatMap(({ calls }) => calls.map(({ id }) => id)));
  const results = new Map<string, ThreadMessage>();
  for (const message of stored) {
    if (message.toolCallId !== undefined && called.has(message.toolCallId))
      results.set(message.toolCallId, message);
  }
  return stored.flatMap((message): Entry[] => {
    if (message.toolCallId !== undefined && results.has(message.toolCallId)) return [];
    const before = replaced.filter(({ id }) => id === message.id);
    const own: Entry = { kind: "stored", key: message.key, message, results: resultsOf(message, results) };
    return before.length === 0 ? [own] : [...before.map(liveEntry), own];
  });
}

const NO_RESULTS: ReadonlyMap<string, ThreadMessage> = new Map();

function resultsOf(
  message: ThreadMessage,
  all: ReadonlyMap<string, ThreadMessage>,
): ReadonlyMap<string, ThreadMessage> {
  if (message.calls.length === 0) return NO_RESULTS;
  const own = new Map<string, ThreadMessage>();
  for (const { id } of message.calls) {
    const result = all.get(id);
    if (result) own.set(id, result);
  }
  return own;
}

/**
 * Returns messages that the state does not have. Once a run has ended and its state was fetched (`isSettled`), what is complete and
 * not in the state will not get there: it is what a model wrote for its node, not for the conversation.
 */
export function liveEntries(
  ids: ReadonlySet<string | undefined>,
  live: LiveThread | undefined,
  isSettled: boolean,
): Entry[] {
  if (!live) return [];
  const hasEnded = live.run === "completed" || live.run === "failed";
  const isGone = (message: LiveMessage) => hasEnded && isSettled && message.status === "written";
  return live.messages.filter((message) => !ids.has(message.id) && !isGone(message)).map(liveEntry);
}

function liveEntry(message: LiveMessage): Entry {
  return { kind: "live", key: `live/${message.key}`, message };
}

/** What the trace knows about a tool call. */
export interface CallFacts {
  toolClass: string | undefined;
  attempts: number;
  durationMs: number | undefined;
  error: string | undefined;
  /** The model calls inside of it; `undefined` if there are none. */
  cost: CallTotals | undefined;
  key: string | undefined;
  span: TraceSpan;
}

/** Names of attributes that spans have besides their own fields. */
const CALL_ID = "gen_ai.tool.call.id";
const FINISH = "gen_ai.response.finish_reasons";
const EFFECT_KEY = "superstep.tool.key";
const TASK = "superstep.task";
const FORKED = "superstep.forked_from";

export function attributesOf(span: TraceSpan): JsonObject {
  return span.attributes as unknown as JsonObject;
}

/** Visits spans in the order of the tree. Not recursive: a trace may be deep. */
export function visitSpans(
  roots: readonly TraceSpan[],
  visit: (span: TraceSpan, parent: TraceSpan | undefined) => void,
): void {
  const open: { span: TraceSpan; parent: TraceSpan | undefined }[] = roots
    .map((span) => ({ span, parent: undefined }))
    .reverse();
  for (let next = open.pop(); next; next = open.pop()) {
    visit(next.span, next.parent);
    for (const inner of next.span.spans.toReversed()) open.push({ span: inner, parent: next.span });
  }
}

/** Returns what is known about each tool call, by its id, up to a time. */
export function callFactsOf(trace: ThreadTrace | undefined, until?: number): Map<string, CallFacts> {
  const facts = new Map<string, CallFacts>();
  visitSpans(trace?.runs ?? [], (span) => {
    const id = span.kind === "tool" ? attributesOf(span)[CALL_ID] : undefined;
    if (typeof id !== "string" || isAfter(span, until)) return;
    const key = attributesOf(span)[EFFECT_KEY];
    facts.set(id, {
      toolClass: span.tool_class,
      attempts: (facts.get(id)?.attempts ?? 0) + 1,
      durationMs: span.duration_ms ?? undefined,
      error: span.error ?? undefined,
      cost: span.cost.model_calls > 0 ? span.cost : undefined,
      key: typeof key === "string" ? key : undefined,
      span,
    });
  });
  return facts;
}

function isAfter(span: TraceSpan, until: number | undefined): boolean {
  return until !== undefined && Date.parse(span.started_at) > until;
}

/** The model call that wrote a message. */
export interface ModelFacts {
  span: TraceSpan;
  node: string;
}

/**
 * Returns the model call of each message of a model, by the key of the message. A message that cannot be matched without doubt has
 * none: a wrong cost is worse than no cost.
 *
 * The id of a message begins with the id of the task that wrote it. If the trace does not name tasks, messages and calls are matched
 * in their order, if there are as many of the one as of the other.
 */
export function modelFactsOf(
  messages: readonly ThreadMessage[],
  trace: ThreadTrace | undefined,
  until?: number,
): Map<string, ModelFacts> {
  const written = messages.filter(({ role }) => role === "ai");
  const calls: { facts: ModelFacts; task: string | undefined }[] = [];
  let isForked = false;
  visitSpans(trace?.runs ?? [], (span, parent) => {
    isForked ||= attributesOf(span)[FORKED] !== undefined;
    if (span.kind !== "model" || span.error !== null || isAfter(span, until)) return;
    const task = parent ? textOf(attributesOf(parent), TASK) : undefined;
    calls.push({ facts: { span, node: parent?.name ?? "" }, task: task?.replaceAll("-", "") });
  });
  if (calls.some(({ task }) => task !== undefined)) return byTask(written, calls);
  return isForked ? new Map() : byOrder(written, calls);
}

type FoundCall = { facts: ModelFacts; task: string | undefined };

function byTask(written: readonly ThreadMessage[], calls: readonly FoundCall[]): Map<string, ModelFacts> {
  const byId = new Map<string, ModelFacts[]>();
  for (const { facts, task } of calls) {
    if (task !== undefined) byId.set(task, [...(byId.get(task) ?? []), facts]);
  }
  const found = new Map<string, ModelFacts>();
  for (const { key, id } of written) {
    const dash = id?.lastIndexOf("-") ?? -1;
    const facts = id === undefined || dash < 0 ? undefined : byId.get(id.slice(0, dash));
    const own = facts?.length === 1 ? facts[0] : facts?.[Number(id?.slice(dash + 1))];
    if (own) found.set(key, own);
  }
  return found;
}

function byOrder(written: readonly ThreadMessage[], calls: readonly FoundCall[]): Map<string, ModelFacts> {
  const found = new Map<string, ModelFacts>();
  for (const hasCalls of [true, false]) {
    const messages = written.filter((message) => message.calls.length > 0 === hasCalls);
    const spans = calls.filter(
      ({ facts }) => JSON.stringify(attributesOf(facts.span)[FINISH] ?? "").includes("tool") === hasCalls,
    );
    if (messages.length !== spans.length) continue;
    messages.forEach((message, index) => {
      const facts = spans[index]?.facts;
      if (facts) found.set(message.key, facts);
    });
  }
  return found;
}

/** What a person decided about a tool call. */
export interface Approval {
  status: RaisedInterrupt["status"];
  decision: string | undefined;
  by: string | undefined;
  at: string | undefined;
}

/** Returns what people decided about tool calls, by the id of the call, up to a time. */
export function approvalsOf(
  interrupts: readonly RaisedInterrupt[] | undefined,
  until?: number,
): Map<string, Approval> {
  const approvals = new Map<string, Approval>();
  for (const { value, status, answer, answered_by, answered_at, asked_at } of interrupts ?? []) {
    const call = textOf(value, "tool_call_id");
    if (call === undefined || (until !== undefined && Date.parse(asked_at) > until)) continue;
    const isAnswered =
      status === "answered" && (until === undefined || Date.parse(answered_at ?? "") <= until);
    approvals.set(call, {
      status: status === "answered" && !isAnswered ? "open" : status,
      decision: isAnswered ? decisionOf(answer) : undefined,
      by: (isAnswered ? answered_by : null) ?? undefined,
      at: (isAnswered ? answered_at : null) ?? undefined,
    });
  }
  return approvals;
}

/** Returns the kind of an answer, in each of the forms in which clients send it. */
export function decisionOf(answer: unknown): string | undefined {
  const first = Array.isArray(answer) ? answer[0] : answer;
  const decisions = isObject(first) ? first.decisions : undefined;
  const inner = Array.isArray(decisions) ? decisions[0] : first;
  return textOf(inner, "type") ?? (typeof inner === "string" ? inner : undefined);
}

/** Returns the labels of messages by their pointers. Labels of a part of a message are labels of the message. */
export function messageLabels(labels: StateLabels | undefined): Map<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { path, labels: own } of labels?.values ?? []) {
    const [, channel, index] = path.split("/");
    if (channel === undefined || index === undefined) continue;
    const pointer = `/${channel}/${index}`;
    found.set(pointer, [...new Set([...(found.get(pointer) ?? []), ...own])]);
  }
  return found;
}
