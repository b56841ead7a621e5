/** What a person can answer to an interrupt, and the JSON that says it. */

import { isObject, type Json, type JsonObject } from "../api/json.ts";
import type { InboxItem, StateDiff } from "../api/types.ts";
import { isSame } from "./json_equal.ts";
import { escaped, fieldOf, initialValue, type Schema, schemaOf } from "./schema_form.ts";

/** The answers that the page has words for. Others are entered with a form. */
export const KNOWN_WAYS = [
  "accept",
  "edit",
  "response",
  "ignore",
  "reject",
  "skip",
  "raise",
  "stop",
  "happened",
  "call",
  "result",
] as const;
export type KnownWay = (typeof KNOWN_WAYS)[number];

/** A key that answers: accept, edit, respond, ignore. */
export type AnswerKey = "a" | "e" | "r" | "i";

export interface AnswerWay {
  /** `answer` and `json`: what is entered is the answer. `change`: an acceptance with changes. */
  id: KnownWay | "answer" | "json" | "change";
  key: AnswerKey | undefined;
  /** What has to be entered first. */
  input: "none" | "text" | "form";
  /** Schema of what is entered; of `text`, too. */
  schema: Schema;
  /** What the form holds at first. */
  initial: Json | undefined;
  /** What is changed, if it is an edit: shown as a diff. */
  original: Json | undefined;
  /** Whether the answer lets something happen outside: a call, a spending, a file that is written. */
  hasEffect: boolean;
  /** Makes the answer of what was entered. */
  make: (entered: Json | undefined) => Json;
}

/** One decision of an interrupt. Most interrupts ask for one. */
export interface AnswerPart {
  /** The tool that would be called. */
  action: string | undefined;
  args: Json | undefined;
  ways: AnswerWay[];
}

export interface AnswerForm {
  parts: AnswerPart[];
  /** Joins the answers of the parts into one. */
  join: (answers: Json[]) => Json;
}

const TEXT: Schema = { type: "string", format: "multiline", minLength: 1 };
const nothing = { input: "none", schema: {}, initial: undefined, original: undefined } as const;
const KEYS: Partial<Record<string, AnswerKey>> = {
  accept: "a",
  raise: "a",
  edit: "e",
  change: "e",
  response: "r",
  answer: "r",
  ignore: "i",
  reject: "i",
  skip: "i",
  stop: "i",
};

/** Reads how an interrupt can be answered. */
export function answerForm(item: InboxItem): AnswerForm {
  const { value, response_schema: schema } = item.interrupt;
  if (Array.isArray(value) && value.length > 0 && value.every(isActionRequest)) {
    return { parts: value.map((each) => decisionPart(each, item.kind)), join: (answers) => answers };
  }
  if (isActionRequest(value)) {
    return { parts: [decisionPart(value, item.kind)], join: (answers) => answers };
  }
  if (isObject(value) && Array.isArray(value.action_requests) && value.action_requests.length > 0) {
    return middlewareForm(value.action_requests, value.review_configs);
  }
  return {
    parts: [schemaPart(value, isObject(schema) ? schema : undefined)],
    join: ([only]) => only ?? null,
  };
}

interface ActionRequest extends JsonObject {
  action_request: { action: string; args: Json };
  config: JsonObject;
}

function isActionRequest(value: unknown): value is ActionRequest {
  if (!isObject(value) || !isObject(value.config) || !isObject(value.action_request)) return false;
  return typeof value.action_request.action === "string" && value.action_request.args !== undefined;
}

/** A decision about an action, in the form of Agent Inbox. */
function decisionPart(value: ActionRequest, kind: string): AnswerPart {
  const { action, args } = value.action_request;
  const may = (name: string) => value.config[`allow_${name}`] === true;
  const ways: AnswerWay[] = [];
  if (kind === "outcome_unknown") {
    ways.push(
      plainWay("happened"),
      plainWay("call"),
      textWay("result", (text) => ({ type: "result", result: text })),
    );
    return { action, args, ways };
  }
  if (may("accept")) ways.push(plainWay("accept"));
  if (may("edit")) ways.push(editWay(args, (edited) => ({ type: "edit", args: { action, args: edited } })));
  if (may("respond")) ways.push(respondWay(value, kind));
  if (may("ignore")) ways.push(plainWay("ignore"));
  return { action, args, ways };
}

function respondWay(value: ActionRequest, kind: string): AnswerWay {
  const make = (entered: Json) => ({ type: "response", args: entered });
  if (kind !== "elicitation" || !isObject(value.form)) return textWay("response", make);
  // The answer goes to the server that asks.
  return { ...formWay("response", value.form, (entered) => make(entered ?? {})), hasEffect: true };
}

/** Decisions about several actions, in the form of LangChain's middleware. */
function middlewareForm(requests: Json[], configs: Json | undefined): AnswerForm {
  const parts = requests.filter(isObject).map((request): AnswerPart => {
    const name = typeof request.name === "string" ? request.name : "";
    const args = request.args ?? null;
    const config = Array.isArray(configs)
      ? configs.filter(isObject).find((each) => each.action_name === name)
      : undefined;
    const allowed = Array.isArray(config?.allowed_decisions)
      ? config.allowed_decisions
      : ["approve", "reject"];
    const ways: AnswerWay[] = [];
    if (allowed.includes("approve")) ways.push({ ...plainWay("accept"), make: () => ({ type: "approve" }) });
    if (allowed.includes("edit")) {
      ways.push(editWay(args, (edited) => ({ type: "edit", edited_action: { name, args: edited } })));
    }
    const respond = allowed.includes("respond") ? "respond" : "reject";
    if (allowed.includes(respond))
      ways.push(textWay("response", (text) => ({ type: respond, message: text })));
    if (allowed.includes("reject")) ways.push({ ...plainWay("ignore"), make: () => ({ type: "reject" }) });
    return { action: name, args, ways };
  });
  return { parts, join: (decisions) => ({ decisions }) };
}

function schemaPart(value: unknown, schema: Schema | undefined): AnswerPart {
  return { action: undefined, args: undefined, ways: verdictWays(value, schema) ?? openWays(schema) };
}

/** The answers of a schema whose field `type` says which of them it is, if the page knows all of them. */
function verdictWays(value: unknown, schema: Schema | undefined): AnswerWay[] | undefined {
  const properties = isObject(schema?.properties) ? schema.properties : undefined;
  const type = properties?.type;
  const kinds = isObject(type) && Array.isArray(type.enum) ? type.enum : undefined;
  if (!schema || !kinds?.every(isKnownWay)) return undefined;
  const { type: _type, ...others } = properties ?? {};
  const required = Array.isArray(schema.required) ? schema.required.filter((name) => name !== "type") : [];
  const rest: Schema = { ...schema, properties: others, required };
  const isPlain = Object.keys(others).length === 0;
  return kinds.flatMap((kind) => {
    if (isPlain || NEGATIVE.has(kind)) return [plainWay(kind)];
    const make = (entered: Json | undefined): Json => ({ type: kind, ...(isObject(entered) ? entered : {}) });
    if (kind === "raise") return [{ ...formWay(kind, raised(rest), make), initial: raiseBy(value, others) }];
    if (kind !== "accept") return [formWay(kind, rest, make)];
    const accept = required.length === 0 ? [plainWay("accept")] : [formWay("accept", rest, make)];
    // Without an answer for edits, the changes come with the acceptance.
    return kinds.includes("edit") || required.length > 0
      ? accept
      : [...accept, formWay("change", rest, make)];
  });
}

const NEGATIVE = new Set<string>(["ignore", "reject", "skip", "stop", "happened", "call"]);

function isKnownWay(value: Json): value is KnownWay {
  return (KNOWN_WAYS as readonly Json[]).includes(value);
}

/** A raise needs an amount, though the schema, which is also that of `stop`, cannot say so. */
function raised(schema: Schema): Schema {
  return { ...schema, required: Object.keys(isObject(schema.properties) ? schema.properties : {}) };
}

/** Doubles the limit, or adds what is missing if that is more. */
function raiseBy(value: unknown, properties: JsonObject): Json {
  const amount = (name: string) => {
    const found = isObject(value) ? value[name] : undefined;
    return typeof found === "number" ? found : 0;
  };
  return "by" in properties ? { by: Math.max(amount("short_by"), amount("limit"), 1) } : {};
}

/** An answer that is entered: as text, with a form, or without a schema as either. */
function openWays(schema: Schema | undefined): AnswerWay[] {
  const make = (entered: Json | undefined) => entered ?? null;
  if (!schema || Object.keys(schema).length === 0) {
    return [textWay("answer", make), { ...formWay("json", {}, make), initial: undefined }];
  }
  const isText = fieldOf(schema).kind === "text" && schema.format === undefined;
  if (!isText) return [formWay("answer", schema, make)];
  return [{ ...textWay("answer", make), schema: { ...TEXT, minLength: 0, ...schema } }];
}

function plainWay(id: KnownWay): AnswerWay {
  return { ...nothing, id, key: KEYS[id], hasEffect: EFFECTS.has(id), make: () => ({ type: id }) };
}

function textWay(id: "response" | "result" | "answer", make: (text: Json) => Json): AnswerWay {
  return {
    id,
    key: KEYS[id],
    input: "text",
    schema: TEXT,
    initial: undefined,
    original: undefined,
    hasEffect: false,
    make: (entered) => make(entered ?? ""),
  };
}

function formWay(id: AnswerWay["id"], schema: Schema, make: (entered: Json | undefined) => Json): AnswerWay {
  const initial = initialValue(schema, schema);
  return {
    id,
    key: KEYS[id],
    input: "form",
    schema,
    initial,
    original: undefined,
    hasEffect: EFFECTS.has(id),
    make,
  };
}

function editWay(args: Json, make: (edited: Json) => Json): AnswerWay {
  return {
    ...formWay("edit", schemaOf(args), (entered) => make(entered ?? args)),
    initial: args,
    original: args,
  };
}

/** Answers that let something happen outside. The others only tell the agent something. */
const EFFECTS = new Set<string>(["accept", "edit", "change", "call", "raise"]);

/** Returns what differs between two values, by JSON Pointer. */
export function changesBetween(before: Json, after: Json): StateDiff["changes"] {
  const changes: StateDiff["changes"] = [];
  compare(before, after, "", changes);
  return changes;
}

function compare(
  before: Json | undefined,
  after: Json | undefined,
  path: string,
  changes: StateDiff["changes"],
): void {
  if (isSame(before, after)) return;
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const at = (value: JsonObject) => (Object.hasOwn(value, name) ? value[name] : undefined);
      compare(at(before), at(after), `${path}/${escaped(name)}`, changes);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    for (let at = 0; at < length; at += 1) compare(before[at], after[at], `${path}/${at}`, changes);
    return;
  }
  changes.push({ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) });
}
