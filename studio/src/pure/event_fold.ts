/** Folds the events of a thread's stream into what is being written right now. Every event counts once, however often it is sent. */

import type { ServerEvent } from "../api/events.ts";
import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";

export type LiveStatus =
  /** The model is writing it. */
  | "writing"
  /** It is complete. */
  | "written"
  /** The run stopped before it was complete. */
  | "stopped"
  /** The node ran again and wrote another version. */
  | "replaced";

export interface LiveBlock {
  index: number;
  kind: "text" | "reasoning" | "call";
  /** The text, or the arguments of the call so far. */
  text: string;
  callId: string;
  callName: string;
  isComplete: boolean;
}

export interface LiveMessage {
  /** Differs between versions of one message. */
  key: string;
  /** The id that the message has in the state. */
  id: string;
  node: string;
  /** The subgraph that writes it; empty for the graph itself. */
  subgraph: string;
  blocks: readonly LiveBlock[];
  status: LiveStatus;
  usage: { input: number; output: number } | undefined;
}

export interface LiveTool {
  id: string;
  name: string;
  status: "running" | "success" | "error";
  progress: string;
  output: string;
}

export interface LiveThread {
  /** The id of the newest event that was folded, and the newest time. */
  last: string | undefined;
  lastAt: number | undefined;
  /** From where a new connection has to continue: what came since then may come again with other tokens, see `isRepeated`. */
  since: string | undefined;
  run: "unknown" | "running" | "completed" | "interrupted" | "failed";
  error: string | undefined;
  messages: readonly LiveMessage[];
  tools: ReadonlyMap<string, LiveTool>;
}

export const NOTHING_LIVE: LiveThread = {
  last: undefined,
  lastAt: undefined,
  since: undefined,
  run: "unknown",
  error: undefined,
  messages: [],
  tools: new Map(),
};

/** A page may stay open for days, so everything that is kept has a limit. */
export const LIMITS = { messages: 200, tools: 200, blocks: 500, text: 200_000, allText: 2_000_000 } as const;

/** Whether an id comes after another one. Ids are numbers, or two of them: `12-97`. */
export function isNewer(id: string, last: string | undefined): boolean {
  if (last === undefined) return true;
  const [entry, place] = numbersOf(id);
  const [lastEntry, lastPlace] = numbersOf(last);
  return entry > lastEntry || (entry === lastEntry && place > lastPlace);
}

function numbersOf(id: string): [number, number] {
  const dash = id.indexOf("-");
  return dash < 0 ? [Number(id), 0] : [Number(id.slice(0, dash)), Number(id.slice(dash + 1))];
}

/**
 * Whether an event was folded before. Tokens are not in the server's log: a server that was killed runs the node again, and gives
 * the ids of the old tokens to the new ones. Those are later, so the time tells them apart.
 */
function isRepeated(live: LiveThread, id: string, at: number | undefined): boolean {
  if (isNewer(id, live.last)) return false;
  return at === undefined || live.lastAt === undefined || at <= live.lastAt;
}

export function foldAll(live: LiveThread, events: readonly ServerEvent[]): LiveThread {
  return events.reduce(foldEvent, live);
}

/** Folds one event. Returns the same object if the event changes nothing, so views can compare by identity. */
export function foldEvent(live: LiveThread, event: ServerEvent): LiveThread {
  const params = isObject(event.data) ? event.data.params : undefined;
  const at = isObject(params) && typeof params.timestamp === "number" ? params.timestamp : undefined;
  if (event.id !== undefined && isRepeated(live, event.id, at)) return live;
  const lastAt = at === undefined ? live.lastAt : Math.max(at, live.lastAt ?? at);
  const seen = event.id === undefined ? live : { ...live, last: event.id, lastAt };
  const data = isObject(params) ? params.data : undefined;
  if (!isObject(params) || !isObject(data)) return seen;
  // Events of the run itself are in the log, so their ids last.
  if (event.name === "lifecycle" && isAtRoot(params))
    return foldLifecycle({ ...seen, since: event.id ?? seen.since }, data);
  if (event.name === "messages") return foldMessage(seen, params, data);
  if (event.name === "tools") return foldTool(seen, data);
  return seen;
}

function isAtRoot(params: JsonObject): boolean {
  return Array.isArray(params.namespace) && params.namespace.length === 0;
}

function foldLifecycle(live: LiveThread, data: JsonObject): LiveThread {
  switch (data.event) {
    case "running":
      // A paused run goes on with what it wrote. What another run left is in the state, or will never be there.
      return live.run === "interrupted" || live.run === "running" || live.run === "unknown"
        ? { ...live, run: "running", error: undefined }
        : {
            ...live,
            run: "running",
            error: undefined,
            messages: live.messages.filter(({ status }) => status === "replaced"),
            tools: new Map(),
          };
    case "completed":
    case "interrupted":
    case "failed": {
      const stopped = live.messages.map((message) =>
        message.status === "writing" ? { ...message, status: "stopped" as const } : message,
      );
      return { ...live, run: data.event, error: textOf(data, "error"), messages: stopped };
    }
    default:
      return live;
  }
}

function foldMessage(live: LiveThread, params: JsonObject, data: JsonObject): LiveThread {
  const id = textOf(data, "message_id") ?? textOf(data, "id");
  if (id === undefined) return live;
  if (data.event === "message-start") return bounded(live, begin(live.messages, id, params, data));
  const at = live.messages.findLastIndex((message) => message.id === id && message.status !== "replaced");
  const found = live.messages[at];
  const message = found ?? newMessage(id, id, params, data);
  const changed = changeMessage(message, data);
  if (changed === message) return live;
  return bounded(live, found ? live.messages.with(at, changed) : [...live.messages, changed]);
}

/** Begins a message. If there is one with its id, the node runs again: the old version stays, marked. */
function begin(
  messages: readonly LiveMessage[],
  id: string,
  params: JsonObject,
  data: JsonObject,
): LiveMessage[] {
  const kept: LiveMessage[] = [];
  for (const message of messages) {
    if (message.id !== id) kept.push(message);
    else if (message.blocks.some(({ text, kind }) => text !== "" || kind === "call"))
      kept.push(message.status === "replaced" ? message : { ...message, status: "replaced" });
  }
  // Older versions may have been dropped, so the number continues after the newest one.
  const last = kept.findLast((message) => message.id === id);
  const number = last === undefined ? 0 : Number(last.key.slice(id.length + 1)) + 1;
  return [...kept, newMessage(id, number === 0 ? id : `${id}/${number}`, params, data)];
}

function newMessage(id: string, key: string, params: JsonObject, data: JsonObject): LiveMessage {
  const path = Array.isArray(params.namespace) ? params.namespace : [];
  return {
    key,
    id,
    node: textOf(params, "node") ?? textOf(data.metadata, "langgraph_node") ?? "",
    subgraph: path.map((segment) => String(segment).split(":")[0]).join("/"),
    blocks: [],
    status: "writing",
    usage: undefined,
  };
}

function changeMessage(message: LiveMessage, data: JsonObject): LiveMessage {
  switch (data.event) {
    case "content-block-start":
      return withBlock(message, data, data.content, (block) => block);
    case "content-block-delta":
      return withBlock(message, data, data.delta, (block, delta) => ({
        ...block,
        text: cut(block.kind, block.text + deltaOf(delta)),
      }));
    case "content-block-finish":
      // It has all of the block, so it heals one whose beginning was not seen.
      return withBlock(message, data, data.content, (block, content) => ({
        ...block,
        text: cut(block.kind, wholeOf(content) ?? block.text),
        isComplete: true,
      }));
    case "message-finish":
      return { ...message, status: "written", usage: usageOf(data.usage) };
    default:
      return message;
  }
}

function withBlock(
  message: LiveMessage,
  data: JsonObject,
  content: Json | undefined,
  change: (block: LiveBlock, content: JsonObject) => LiveBlock,
): LiveMessage {
  const index = data.index;
  if (typeof index !== "number" || !isObject(content)) return message;
  const at = message.blocks.findLastIndex((block) => block.index === index);
  const found = message.blocks[at];
  if (!found && message.blocks.length >= LIMITS.blocks) return message;
  const block = change(found ?? newBlock(index, content), content);
  const blocks = found ? message.blocks.with(at, block) : [...message.blocks, block];
  return { ...message, blocks };
}

function newBlock(index: number, content: JsonObject): LiveBlock {
  const type = textOf(content, "type") ?? "";
  const kind = type.startsWith("reasoning") ? "reasoning" : type.startsWith("text") ? "text" : "call";
  return {
    index,
    kind,
    text: "",
    callId: textOf(content, "id") ?? "",
    callName: textOf(content, "name") ?? "",
    isComplete: false,
  };
}

function deltaOf(delta: JsonObject): string {
  return textOf(delta, "text") ?? textOf(delta, "reasoning") ?? textOf(delta, "args") ?? "";
}

function wholeOf(content: JsonObject): string | undefined {
  if (content.args !== undefined) {
    return typeof content.args === "string" ? content.args : JSON.stringify(content.args);
  }
  return textOf(content, "text") ?? textOf(content, "reasoning");
}

/** A reader of growing text needs its end; arguments can be read from their beginning only. */
function cut(kind: LiveBlock["kind"], text: string): string {
  if (text.length <= LIMITS.text) return text;
  // More than needed is dropped, so that the text does not begin at another place with every token.
  return kind === "call" ? text.slice(0, LIMITS.text) : text.slice(-LIMITS.text * 0.75);
}

function usageOf(usage: Json | undefined): LiveMessage["usage"] {
  if (!isObject(usage)) return undefined;
  const { input_tokens: input, output_tokens: output } = usage;
  return typeof input === "number" && typeof output === "number" ? { input, output } : undefined;
}

/** Drops the oldest messages if there are too many, or too long ones. The newest one always stays. */
function bounded(live: LiveThread, messages: LiveMessage[]): LiveThread {
  let first = Math.max(0, messages.length - LIMITS.messages);
  let length = 0;
  for (let index = messages.length - 1; index >= first; index--) {
    length += lengthOf(messages[index]);
    if (length > LIMITS.allText && index < messages.length - 1) first = index + 1;
  }
  return { ...live, messages: first === 0 ? messages : messages.slice(first) };
}

function lengthOf(message: LiveMessage | undefined): number {
  return message?.blocks.reduce((sum, { text }) => sum + text.length, 0) ?? 0;
}

function foldTool(live: LiveThread, data: JsonObject): LiveThread {
  const id = textOf(data, "tool_call_id");
  if (id === undefined) return live;
  const known = live.tools.get(id);
  const before: LiveTool = known ?? { id, name: "", status: "running", progress: "", output: "" };
  const tool = changeTool(before, data);
  if (tool === before) return live;
  const tools = new Map(live.tools);
  tools.set(id, tool);
  const oldest = tools.size > LIMITS.tools ? tools.keys().next().value : undefined;
  if (oldest !== undefined) tools.delete(oldest);
  return { ...live, tools };
}

function changeTool(tool: LiveTool, data: JsonObject): LiveTool {
  switch (data.event) {
    case "tool-started":
      return {
        ...tool,
        name: textOf(data, "tool_name") ?? tool.name,
        status: "running",
        progress: "",
        output: "",
      };
    case "tool-output-delta":
      return { ...tool, progress: (textOf(data, "delta") ?? "").slice(0, 1000) };
    case "tool-finished":
      return {
        ...tool,
        status: "success",
        output: (textOf(data.output, "content") ?? "").slice(0, LIMITS.text),
      };
    case "tool-error":
      return { ...tool, status: "error", output: (textOf(data, "message") ?? "").slice(0, LIMITS.text) };
    default:
      return tool;
  }
}

/** Returns all text of one kind. */
export function liveText(message: LiveMessage, kind: "text" | "reasoning" = "text"): string {
  return message.blocks
    .filter((block) => block.kind === kind)
    .map(({ text }) => text)
    .join("");
}
