/** Starting forks: each is a run of the public API from a checkpoint. */

import { answerInterrupts, refreshThread, startRun } from "../../../api/actions.ts";
import { request } from "../../../api/client.ts";
import { isObject, type Json, type JsonObject } from "../../../api/json.ts";
import type { Interrupt, Run, Thread, ThreadState } from "../../../api/types.ts";
import { areSameQuestions } from "../../../pure/first_difference.ts";
import { overwriting } from "../../../pure/input_form.ts";
import { fork } from "../../../text/fork.ts";

/** What a fork does differently. */
export type ForkChange =
  | { mode: "again" }
  /** One answer for each interrupt of the checkpoint, in their order, and whether one of them lets something happen. */
  | { mode: "answer"; answers: Json[]; hasEffect: boolean }
  | { mode: "state"; values: JsonObject }
  | { mode: "input"; input: Json }
  | { mode: "assistant"; assistant: string; config: JsonObject; context: JsonObject };

type AnswerChange = Extract<ForkChange, { mode: "answer" }>;
export type ForkMode = ForkChange["mode"];

export interface ForkPlan {
  thread: string;
  assistant: string;
  checkpoint: string;
  change: ForkChange;
  /** Whether the fork goes into a copy of the thread. */
  isCopy: boolean;
  /** The interrupts of the checkpoint. */
  interrupts: readonly Interrupt[];
  /** Whether the thread still waits for their answers. */
  isOpen: boolean;
  onPhase: (phase: string) => void;
}

/** The fork runs, but it asks something else than what was answered. */
export class AskedSomethingElse extends Error {
  readonly thread: string;

  constructor(thread: string) {
    super(fork.askedElse);
    this.thread = thread;
  }
}

const id = encodeURIComponent;

/** Starts a fork and returns its thread. */
export async function startFork(plan: ForkPlan): Promise<string> {
  plan.onPhase(fork.starting);
  let { thread } = plan;
  if (plan.isCopy) {
    thread = (await request<Thread>(`/threads/${id(plan.thread)}/copy`, { method: "POST", json: {} }))
      .thread_id;
  }
  try {
    await startIn(thread, plan);
  } finally {
    void refreshThread(thread);
  }
  return thread;
}

async function startIn(thread: string, plan: ForkPlan): Promise<void> {
  const { change, assistant, checkpoint } = plan;
  const at = { checkpoint_id: checkpoint };
  switch (change.mode) {
    case "again":
      await startRun(thread, assistant, null, at);
      return;
    case "input":
      await startRun(thread, assistant, change.input, at);
      return;
    case "assistant": {
      const { config, context } = change;
      await startRun(thread, change.assistant, null, { ...at, config, context });
      return;
    }
    case "state": {
      const written = Object.entries(change.values).map(
        ([name, value]) => [name, overwriting(value)] as const,
      );
      const json = { values: Object.fromEntries(written), checkpoint_id: checkpoint };
      await request(`/threads/${id(thread)}/state`, { method: "POST", json });
      await startRun(thread, assistant, null);
      return;
    }
    case "answer":
      await answerIn(thread, plan, change);
  }
}

/** Answers where the thread waits. At an older checkpoint, the fork has to ask again first: its interrupts are new ones. */
async function answerIn(thread: string, plan: ForkPlan, { answers, hasEffect }: AnswerChange): Promise<void> {
  if (!plan.isOpen || plan.isCopy) {
    plan.onPhase(fork.waiting);
    const run = await startRun(thread, plan.assistant, null, { checkpoint_id: plan.checkpoint });
    await waitForEnd(run);
  }
  const state = await request<ThreadState>(`/threads/${id(thread)}/state`);
  if (!areSameQuestions(plan.interrupts, state.interrupts, hasEffect)) throw new AskedSomethingElse(thread);
  plan.onPhase(fork.answering);
  const byId = state.interrupts.map((interrupt, place) => [interrupt.id, answers[place] ?? null] as const);
  await answerInterrupts(thread, plan.assistant, Object.fromEntries(byId));
}

async function waitForEnd(run: Run): Promise<void> {
  const result = await request<Json>(`/threads/${id(run.thread_id)}/runs/${id(run.run_id)}/join`);
  const error = isObject(result) ? result.__error__ : undefined;
  if (isObject(error)) throw new Error(String(error.message ?? error.error));
}
