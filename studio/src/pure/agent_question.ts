/** What an interrupt asks, as the thing that it is about. Interrupts of unknown agents are actions, texts or plain values. */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";
import { type ChangeSet, changeSetOf } from "./change_set.ts";
import {
  type DescribedMeeting,
  type DescribedReply,
  parseMeeting,
  parseReceivedMail,
  parseReply,
  type ReceivedMail,
  type ToneDraft,
  tonesOf,
} from "./mail.ts";

/** What is read of an item of the inbox. */
export interface AskedItem {
  graph_id: string;
  kind: string;
  interrupt: { value?: unknown };
}

export interface ReplyQuestion {
  type: "reply";
  reply: DescribedReply;
  body: string;
  tones: ToneDraft[];
}
export interface MeetingQuestion {
  type: "meeting";
  meeting: DescribedMeeting;
}
export interface NoticeQuestion {
  type: "notice";
  mail: ReceivedMail;
  classification: string;
  reasoning: string;
  quote: string;
  suspicion: string[];
}
export interface MailQuestion {
  type: "mail_question";
  question: string;
  mail: ReceivedMail;
}
export interface ChangesQuestion {
  type: "changes";
  changes: ChangeSet;
}
export interface CallQuestion {
  type: "call";
  call: ApiCall;
}
export interface GateQuestion {
  type: "gate";
  gate: Gate;
}
export interface InterviewQuestion {
  type: "interview";
  question: string;
}
export interface ChoiceQuestion {
  type: "choice";
  question: string;
  parameter: string;
  kind: string;
  choices: string[];
}
export interface BudgetQuestion {
  type: "budget";
  why: string;
  level: string;
  meter: string;
  limit: number;
  shortBy: number;
}
export interface ActionQuestion {
  type: "action";
  action: string;
  args: Json;
  description: string;
  choices: { type: string; means: string }[];
}
export interface ValueQuestion {
  type: "value";
  /** The text, if there is one. */
  text: string;
  /** The rest of the value, if it is more than the text. */
  value: Json | undefined;
}

export type AgentQuestionView =
  | ReplyQuestion
  | MeetingQuestion
  | NoticeQuestion
  | MailQuestion
  | ChangesQuestion
  | CallQuestion
  | GateQuestion
  | InterviewQuestion
  | ChoiceQuestion
  | BudgetQuestion
  | ActionQuestion
  | ValueQuestion;

/** The exact call that a person approves. */
export interface ApiCall {
  method: string;
  url: string;
  headers: ApiHeader[];
  body: Json | undefined;
  /** What the program says besides: labels of the arguments, why the last answer was not accepted. */
  notes: string[];
}

export interface ApiHeader {
  name: string;
  value: string;
  /** Its value is not shown. */
  isSecret: boolean;
  /** The program adds it. */
  isAdded: boolean;
}

/** Whether a page of `docs` is refined once more. */
export interface Gate {
  agent: string;
  iteration: number;
  maxIterations: number;
  scores: number[];
  threshold: number;
  questions: string[];
  missing: string[];
  spent: GateCost;
  estimate: GateCost;
}
export interface GateCost {
  calls: number;
  tokens: number;
  cost: string;
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
const numberIn = (value: unknown, field: string): number => {
  const found = isObject(value) ? value[field] : undefined;
  return typeof found === "number" ? found : 0;
};

export function questionOf(item: AskedItem): AgentQuestionView {
  const value = item.interrupt.value as Json | undefined;
  if (!isObject(value)) return plainValue(value ?? null);
  return actionQuestion(value, item) ?? agentQuestion(value, item) ?? plainValue(value);
}

function agentQuestion(value: JsonObject, item: AskedItem): AgentQuestionView | undefined {
  const changes = changeSetOf(value);
  if (changes) return { type: "changes", changes };
  if (item.kind === "gate" && Array.isArray(value.questions)) return { type: "gate", gate: gateOf(value) };
  if (item.kind === "budget" && typeof value.limit === "number") return budgetOf(value);
  const query = textOf(value, "query");
  if (item.graph_id === "analyze" && query !== undefined) return { type: "interview", question: query };
  const question = textOf(value, "question");
  if (question !== undefined && item.graph_id.startsWith("atris")) return choiceOf(value, question);
  return undefined;
}

function actionQuestion(value: JsonObject, item: AskedItem): AgentQuestionView | undefined {
  const request = isObject(value.action_request) ? value.action_request : firstRequest(value);
  const action = textOf(request, "action") ?? textOf(request, "name");
  if (!request || action === undefined) return undefined;
  const args = request.args ?? null;
  const description = textOf(value, "description") ?? textOf(request, "description") ?? "";
  const known =
    item.graph_id === "email_assistant" ? mailAction(value, action, args, description) : undefined;
  if (known) return known;
  if (action === "call_api" && textOf(args, "url") !== undefined && item.kind === "approval") {
    return { type: "call", call: apiCallOf(args, description) };
  }
  return { type: "action", action, args, description, choices: choicesOf(value.choices) };
}

/** Other frameworks ask with a list of actions. */
function firstRequest(value: JsonObject): JsonObject | undefined {
  const [first] = Array.isArray(value.action_requests) ? value.action_requests : [];
  return isObject(first) ? first : undefined;
}

function mailAction(
  value: JsonObject,
  action: string,
  args: Json,
  description: string,
): AgentQuestionView | undefined {
  if (action === "send_email_tool") {
    const reply = parseReply(description);
    const body = textOf(args, "response_text");
    return reply && body !== undefined ? { type: "reply", reply, body, tones: tonesOf(value) } : undefined;
  }
  if (action === "schedule_meeting_tool") {
    const meeting = parseMeeting(description, textOf(args, "title") ?? "");
    return meeting && { type: "meeting", meeting };
  }
  if (action === "Question") {
    const question = textOf(args, "content") ?? "";
    const mail = description.startsWith(`${question}\n\n`)
      ? parseReceivedMail(description.slice(question.length + 2))
      : undefined;
    return mail && { type: "mail_question", question, mail };
  }
  return typeof value.classification_decision === "string" ? noticeOf(value, description) : undefined;
}

function noticeOf(value: JsonObject, description: string): NoticeQuestion | undefined {
  const suspicion = texts(value.suspicion);
  const reasons = suspicion.map((reason) => `- ${reason}`).join("\n");
  const head = `This mail is suspicious, and no reply was drafted:\n${reasons}\n\n`;
  const text =
    suspicion.length > 0 && description.startsWith(head) ? description.slice(head.length) : description;
  const mail = parseReceivedMail(text);
  return (
    mail && {
      type: "notice",
      mail,
      classification: textOf(value, "classification_decision") ?? "",
      reasoning: textOf(value, "reasoning") ?? "",
      quote: textOf(value, "quote") ?? "",
      suspicion,
    }
  );
}

const SECRET = /authorization|cookie|api-?key|token|secret|password|signature/i;

export function apiCallOf(args: Json, description: string): ApiCall {
  const own = isObject(args) && isObject(args.headers) ? args.headers : {};
  const headers: ApiHeader[] = Object.entries(own).map(([name, value]) => {
    const isSecret = SECRET.test(name);
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return { name, value: isSecret ? "" : text, isSecret, isAdded: false };
  });
  const head = `This call changes something and has not been made:\n${textOf(args, "method")} ${textOf(args, "url")}\n`;
  const isKnown = description.startsWith(head);
  const lines = isKnown ? description.slice(head.length).split("\n").slice(headers.length) : [];
  const end = lines.findIndex((line) => line === "" || /^[\d,]+ bytes? of body:$/.test(line));
  for (const line of end < 0 ? lines : lines.slice(0, end)) {
    const colon = line.indexOf(": ");
    // The program writes a placeholder in place of a secret, so its value can be shown.
    if (colon > 0)
      headers.push({
        name: line.slice(0, colon),
        value: line.slice(colon + 2),
        isSecret: false,
        isAdded: true,
      });
  }
  const body = isObject(args) ? args.body : undefined;
  return {
    method: textOf(args, "method") ?? "",
    url: textOf(args, "url") ?? "",
    headers,
    body: body ?? undefined,
    notes: isKnown ? notesBehind(description.slice(head.length), body) : [description],
  };
}

/** Returns the paragraphs behind the body. The body is the program's own JSON, so its end is known. */
function notesBehind(rest: string, body: Json | undefined): string[] {
  const shown = body === undefined || body === null ? "" : JSON.stringify(body, null, 2);
  const at = shown && rest.includes(shown) ? rest.indexOf(shown) + shown.length : rest.indexOf("\n\n");
  if (at < 0) return [];
  const notes = rest.slice(at).split("\n\n");
  return notes.map((note) => note.trim()).filter(Boolean);
}

function gateOf(value: JsonObject): Gate {
  const cost = (of: unknown): GateCost => ({
    calls: numberIn(of, "calls"),
    tokens: numberIn(of, "tokens"),
    cost: textOf(of, "cost") ?? "",
  });
  const scores = Array.isArray(value.scores) ? value.scores : [];
  return {
    agent: textOf(value, "agent") ?? "",
    iteration: numberIn(value, "iteration"),
    maxIterations: numberIn(value, "maxIterations"),
    scores: scores.filter((score) => typeof score === "number"),
    threshold: numberIn(value, "threshold"),
    questions: texts(value.questions),
    missing: texts(value.missingInformation),
    spent: cost(value.spent),
    estimate: cost(value.estimate),
  };
}

function budgetOf(value: JsonObject): BudgetQuestion {
  return {
    type: "budget",
    why: textOf(value, "description") ?? "",
    level: textOf(value, "level") ?? "",
    meter: textOf(value, "meter") ?? "",
    limit: numberIn(value, "limit"),
    shortBy: numberIn(value, "short_by"),
  };
}

function choiceOf(value: JsonObject, question: string): ChoiceQuestion {
  const choices = Array.isArray(value.choices) ? value.choices : [];
  return {
    type: "choice",
    question,
    parameter: textOf(value, "parameter") ?? "",
    kind: textOf(value, "type") ?? "",
    choices: choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice))),
  };
}

function choicesOf(value: unknown): { type: string; means: string }[] {
  const choices = Array.isArray(value) ? value : [];
  return choices.flatMap((choice: Json) => {
    const type = textOf(choice, "type");
    return type === undefined ? [] : [{ type, means: textOf(choice, "means") ?? "" }];
  });
}

const TEXT_FIELDS = ["description", "question", "query", "summary", "message", "text"];

/** Returns a value with its text first: the text itself, or a field that usually has one. */
function plainValue(value: Json): ValueQuestion {
  if (typeof value === "string") return { type: "value", text: value, value: undefined };
  if (!isObject(value)) return { type: "value", text: "", value };
  const field = TEXT_FIELDS.find((name) => typeof value[name] === "string");
  if (field === undefined) return { type: "value", text: "", value };
  const { [field]: text, answers: _, ...rest } = value;
  return { type: "value", text: String(text), value: Object.keys(rest).length > 0 ? rest : undefined };
}

/** A stretch of text, or a character that cannot be seen or changes the order of others. */
export interface TextPart {
  text: string;
  isHidden: boolean;
}

// Line breaks and tabs are layout. Joiners and the selectors of emoji belong to letters of some scripts.
const HIDDEN =
  /(?!\n|\r|\t|\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu;

/** Splits a text at hidden characters and names them: `U+202E`. */
export function visibleParts(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) parts.push({ text: text.slice(from, found.index), isHidden: false });
    const code = found[0].codePointAt(0) ?? 0;
    parts.push({ text: `U+${code.toString(16).toUpperCase().padStart(4, "0")}`, isHidden: true });
    from = found.index + found[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isHidden: false });
  return parts;
}

/** Cuts a text to a number of characters and lines. Returns it as it is if it is short enough. */
export function cutText(text: string, charsMax: number, linesMax: number): string {
  let end = 0;
  for (let lines = 0; lines < linesMax; lines++) {
    const next = text.indexOf("\n", end);
    if (next < 0 || next > charsMax) return charsMax >= text.length ? text : text.slice(0, charsMax);
    end = next + 1;
  }
  return text.slice(0, Math.min(end, charsMax)).replace(/\n$/, "");
}

/** Rows of a table, if a value is a list of objects. Columns are the fields with plain values, the most frequent first. */
export interface ResultTable {
  columns: string[];
  rows: JsonObject[];
}

export function tableOf(response: unknown, columnsMax = 8): ResultTable | undefined {
  const rows = rowsOf(response);
  if (!rows) return undefined;
  const counts = new Map<string, number>();
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (plainCell(value) !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const columns = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return columns.length > 0 ? { columns: columns.slice(0, columnsMax), rows } : undefined;
}

function rowsOf(response: unknown): JsonObject[] | undefined {
  if (Array.isArray(response)) {
    const rows = response.filter(isObject);
    return rows.length > 0 && rows.length === response.length ? rows : undefined;
  }
  if (!isObject(response)) return undefined;
  // APIs wrap their lists: `{"data": […]}`, `{"orders": […], "total": 2}`.
  const lists = Object.values(response).filter((value) => Array.isArray(value) && value.some(isObject));
  if (lists.length === 1) return rowsOf(lists[0]);
  return isObject(response.data) ? rowsOf(response.data) : [response];
}

/** Returns the text of a cell; `undefined` for what has parts. An object with a name is shown by it. */
export function plainCell(value: Json | undefined): string | undefined {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  return isObject(value) ? (textOf(value, "name") ?? textOf(value, "title")) : undefined;
}
