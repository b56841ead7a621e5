/**
 * A scripted case from a branch: its inputs, its answers, and the model's replies in the format of superstep-llm's scripts.
 * The API has no replies as such, so they are put together from the messages that steps wrote and the calls in the trace.
 */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";
import type { Run, ThreadTrace, TraceSpan, TreeCheckpoint } from "../api/types.ts";
import { fork } from "../text/fork.ts";
import type { Change } from "./first_difference.ts";

/** A checkpoint of the branch, with what changed since the one before it. */
export interface BranchStep {
  checkpoint: TreeCheckpoint;
  changes: readonly Change[];
}

export interface BranchRecord {
  thread: string;
  graph: string;
  /** The oldest first. */
  steps: readonly BranchStep[];
  /** Whether the branch is known from its beginning. */
  isWhole: boolean;
  runs: readonly Run[];
  trace: ThreadTrace;
  /** The state at the end of the branch. */
  values: Json;
  hasFiles: boolean;
}

export interface ScriptedReply {
  at: string;
  text?: string;
  tool_calls?: { name: string; args: Json }[];
  usage?: { input_tokens: number; output_tokens: number };
}

export interface Scenario {
  about: string;
  thread_id: string;
  graph_id: string;
  inputs: Json[];
  answers: Json[];
  edits: { step: number; changes: readonly Change[] }[];
  script: { replies: ScriptedReply[] };
  expected: { next: string[]; values: Json };
  not_recovered: string[];
}

export function scenarioOf(record: BranchRecord): Scenario {
  const lost = new Set<string>();
  const replies = record.steps.flatMap((step) => repliesOf(step, record.trace, lost));
  replies.forEach((reply, place) => {
    if (reply.text === undefined && !reply.tool_calls) lost.add(fork.lost.reply(place, reply.at));
  });
  if (replies.length > 0) lost.add(fork.lost.label);
  if (!record.isWhole) lost.add(fork.lost.cut);
  if (record.hasFiles) lost.add(fork.lost.files);
  const tip = record.steps.at(-1)?.checkpoint;
  if (tip && tip.next.length > 0) lost.add(fork.lost.open);
  const edits = record.steps.filter(({ checkpoint }) => checkpoint.source === "update");
  for (const { checkpoint } of edits) lost.add(fork.lost.edit(checkpoint.step));
  return {
    about: fork.testAbout(record.thread),
    thread_id: record.thread,
    graph_id: record.graph,
    inputs: inputsOf(record, lost),
    answers: answersOf(record),
    edits: edits.map(({ checkpoint, changes }) => ({ step: checkpoint.step, changes })),
    script: {
      replies: replies.map((reply) => ("text" in reply || reply.tool_calls ? reply : { ...reply, text: "" })),
    },
    expected: { next: tip?.next ?? [], values: record.values },
    not_recovered: [...lost],
  };
}

function inputsOf({ steps, runs }: BranchRecord, lost: Set<string>): Json[] {
  const inputs: Json[] = [];
  for (const { checkpoint } of steps.filter((step) => step.checkpoint.source === "input")) {
    const kwargs: unknown = runs.find((each) => each.run_id === checkpoint.run_id)?.kwargs;
    const input = isObject(kwargs) ? kwargs.input : undefined;
    if (input === undefined || input === null) lost.add(fork.lost.input(checkpoint.step));
    else inputs.push(input);
  }
  return inputs;
}

/** The answers that were given between two checkpoints of the branch. Those of other branches were given at other times. */
function answersOf({ steps, runs }: BranchRecord): Json[] {
  const times = steps.map(({ checkpoint }) => Date.parse(checkpoint.created_at));
  const isOnBranch = (at: number) => {
    const next = times.findIndex((time) => time >= at);
    if (next === 0) return false;
    // After the last checkpoint, an answer that was given has not been stored in one yet.
    return next < 0 || steps[next]?.checkpoint.source === "loop";
  };
  const answered = runs
    .filter((run) => isOnBranch(Date.parse(run.created_at)))
    .toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
  return answered.flatMap((run) => {
    const kwargs: unknown = run.kwargs;
    const command = isObject(kwargs) ? kwargs.command : null;
    const resume = isObject(command) ? command.resume : null;
    return resume === null || resume === undefined ? [] : [resume];
  });
}

function repliesOf(step: BranchStep, trace: ThreadTrace, lost: Set<string>): ScriptedReply[] {
  const { checkpoint, changes } = step;
  if (checkpoint.source !== "loop" || checkpoint.step <= 0) return [];
  const superstep = superstepOf(trace, checkpoint);
  const messages = changes.flatMap(({ after }) => modelMessages(after));
  if (!superstep) {
    if (messages.length > 0) lost.add(fork.lost.step(checkpoint.step));
    return messages.map((message) => replyOf("", message, undefined));
  }
  const calls = modelCalls(superstep, "").filter(({ span }) => span.error === null);
  if (calls.length !== messages.length && messages.length > 0) lost.add(fork.lost.unsure(checkpoint.step));
  return matchCalls(calls, messages);
}

/** A superstep ends when its checkpoint is written. */
function superstepOf(trace: ThreadTrace, checkpoint: TreeCheckpoint): TraceSpan | undefined {
  const end = Date.parse(checkpoint.created_at);
  const supersteps = trace.runs.flatMap((run) => run.spans).filter((span) => span.kind === "superstep");
  return supersteps.find((span) => span.ended_at !== null && Date.parse(span.ended_at) === end);
}

interface ModelCall {
  node: string;
  span: TraceSpan;
}

function modelCalls(span: TraceSpan, node: string): ModelCall[] {
  if (span.kind === "model") return [{ node, span }];
  return span.spans.flatMap((inner) => modelCalls(inner, span.node ?? node));
}

/** Gives each call the next message that has tool calls exactly if the call ended with some. */
function matchCalls(calls: ModelCall[], messages: JsonObject[]): ScriptedReply[] {
  const left = [...messages];
  const isInOrder = calls.length === messages.length;
  return calls.map(({ node, span }) => {
    const reasons: unknown = span.attributes["gen_ai.response.finish_reasons"];
    const asks = Array.isArray(reasons) && reasons.includes("tool_calls");
    const at = isInOrder ? 0 : left.findIndex((message) => toolCalls(message).length > 0 === asks);
    const message = at < 0 ? undefined : left.splice(at, 1)[0];
    return replyOf(node, message, span);
  });
}

function replyOf(node: string, message: JsonObject | undefined, span: TraceSpan | undefined): ScriptedReply {
  const reply: ScriptedReply = { at: node };
  if (message) {
    reply.text = messageText(message);
    const calls = toolCalls(message);
    if (calls.length > 0) reply.tool_calls = calls;
  }
  if (span?.input_tokens !== undefined && span.output_tokens !== undefined) {
    reply.usage = { input_tokens: span.input_tokens, output_tokens: span.output_tokens };
  }
  return reply;
}

/** The messages of models in a value that was written: it may be one, a list, or have a list somewhere inside. */
function modelMessages(value: unknown): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(modelMessages);
  if (!isObject(value)) return [];
  if (value.type === "ai" && "content" in value) return [value];
  return "content" in value ? [] : Object.values(value).flatMap(modelMessages);
}

function messageText(message: JsonObject): string {
  if (typeof message.content === "string") return message.content;
  const blocks = Array.isArray(message.content) ? message.content : [];
  return blocks.map((block) => textOf(block, "text") ?? "").join("");
}

function toolCalls(message: JsonObject): { name: string; args: Json }[] {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  return calls.flatMap((call) => {
    const name = textOf(call, "name");
    return name === undefined ? [] : [{ name, args: isObject(call) ? (call.args ?? {}) : {} }];
  });
}
