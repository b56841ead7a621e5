/**
 * Answers on their way to the server.
 *
 * An answer is shown as given at once. One that causes effects outside is held for three seconds, so that it can be undone;
 * the others are sent immediately. If the server is away, the answer is sent when it is back: sending it twice is harmless,
 * because the server takes one answer for an interrupt, and recognizes the same answer by its key.
 */

import { useSyncExternalStore } from "react";

import { answerInterrupts } from "../../api/actions.ts";
import { queryClient } from "../../api/cache.ts";
import { ApiProblem, newKey, request } from "../../api/client.ts";
import { isObject, type Json } from "../../api/json.ts";
import { interruptsQuery, meQuery } from "../../api/queries.ts";
import type { InboxItem, RaisedInterrupt, Run } from "../../api/types.ts";
import { isSameAnswer } from "../../pure/json_equal.ts";
import { inbox as text } from "../../text/inbox.ts";
import { forgetDraft } from "./drafts.ts";
import { type FirstAnswer, firstText } from "./first_answer.ts";
import { showMessage } from "./messages.ts";

export const HOLD_MS = 3000;
const AT_ONCE = 4;
const KEPT_MS = 60_000;

export interface GivenAnswer {
  item: InboxItem;
  answer: Json;
  /** The name of the answer, as the page shows it. */
  way: string;
  hasEffect: boolean;
}

export type Phase =
  | { name: "held"; until: number }
  | { name: "sending" }
  | { name: "away" }
  | { name: "sent" }
  | { name: "refused"; why: string }
  /** Another answer was first. */
  | { name: "taken"; by: FirstAnswer };

/** The answers to a thread that are sent together. */
export interface OutgoingAnswers {
  /** Answers that were given with one action are undone with one. */
  batch: number;
  thread: string;
  given: readonly GivenAnswer[];
  /** Every attempt has the same key, so the server takes one of them. */
  key: string;
  attempts: number;
  phase: Phase;
}

let outgoing: ReadonlyMap<string, OutgoingAnswers> = new Map();
let batches = 0;
let active = 0;
const waiting: OutgoingAnswers[] = [];
const timers = new Map<OutgoingAnswers["thread"], ReturnType<typeof setTimeout>>();
const listeners = new Set<() => void>();

/** Takes the answers to one or more threads. */
export function submitAnswers(given: readonly GivenAnswer[]): void {
  batches += 1;
  const threads = new Map<string, GivenAnswer[]>();
  for (const each of given) {
    const { thread_id: thread } = each.item;
    threads.set(thread, [...(threads.get(thread) ?? []), each]);
  }
  const isHeld = given.some(({ hasEffect }) => hasEffect);
  for (const [thread, answers] of threads) {
    const phase: Phase = isHeld ? { name: "held", until: Date.now() + HOLD_MS } : { name: "sending" };
    put({ batch: batches, thread, given: answers, key: newKey(), attempts: 0, phase });
    if (isHeld)
      timers.set(
        thread,
        setTimeout(() => sendThread(thread), HOLD_MS),
      );
    else sendThread(thread);
  }
}

/** Sends what is held, without waiting. */
export function sendNow(batch: number): void {
  for (const each of all()) if (each.batch === batch && each.phase.name === "held") sendThread(each.thread);
}

/** Takes back answers that were not sent. Returns whether there were any. */
export function undo(batch: number | undefined = latestHeld()): boolean {
  const undone = all().filter((each) => each.batch === batch && each.phase.name === "held");
  for (const { thread } of undone) {
    clearTimeout(timers.get(thread));
    remove(thread);
  }
  return undone.length > 0;
}

/** Forgets what became of an answer, for example to answer again after a refusal. */
export function forget(thread: string): void {
  remove(thread);
}

function latestHeld(): number | undefined {
  return all().findLast(({ phase }) => phase.name === "held")?.batch;
}

function all(): OutgoingAnswers[] {
  return [...new Set(outgoing.values())];
}

function entryOf(thread: string): OutgoingAnswers | undefined {
  return outgoing.get(thread);
}

function put(entry: OutgoingAnswers): void {
  outgoing = new Map(outgoing).set(entry.thread, entry);
  for (const listener of listeners) listener();
}

function setPhase(thread: string, batch: number, phase: Phase): void {
  const entry = entryOf(thread);
  if (entry?.batch === batch) put({ ...entry, phase });
}

function remove(thread: string): void {
  const changed = new Map(outgoing);
  changed.delete(thread);
  outgoing = changed;
  for (const listener of listeners) listener();
}

function sendThread(thread: string): void {
  clearTimeout(timers.get(thread));
  const entry = entryOf(thread);
  if (!entry) return;
  const sending: OutgoingAnswers = { ...entry, attempts: entry.attempts + 1, phase: { name: "sending" } };
  put(sending);
  waiting.push(sending);
  pump();
}

/** Many threads may be answered at once; the server gets a few requests at a time. */
function pump(): void {
  while (active < AT_ONCE) {
    const entry = waiting.shift();
    if (!entry) return;
    active += 1;
    void deliver(entry).finally(() => {
      active -= 1;
      pump();
    });
  }
}

async function deliver(entry: OutgoingAnswers): Promise<void> {
  const { thread, given } = entry;
  const assistant = given[0]?.item.assistant_id ?? given[0]?.item.graph_id ?? "";
  const answers = Object.fromEntries(given.map(({ item, answer }) => [item.interrupt.id, answer]));
  try {
    const run = await answerInterrupts(thread, assistant, answers, entry.key);
    markSent(entry);
    void confirm(entry, run);
  } catch (error) {
    if (error instanceof ApiProblem && error.isTransient) sendLater(entry);
    else await explain(entry, error);
  }
}

function sendLater({ thread, batch, attempts }: OutgoingAnswers): void {
  if (entryOf(thread)?.batch !== batch) return;
  setPhase(thread, batch, { name: "away" });
  const delay = Math.min(250 * 2 ** attempts, 2000);
  timers.set(
    thread,
    setTimeout(() => sendThread(thread), delay),
  );
}

function markSent(entry: OutgoingAnswers): void {
  setPhase(entry.thread, entry.batch, { name: "sent" });
  for (const { item } of entry.given) forgetDraft(item.interrupt.id);
  setTimeout(() => {
    const now = entryOf(entry.thread);
    if (now?.batch === entry.batch && now.phase.name === "sent") remove(entry.thread);
  }, KEPT_MS);
}

/** Finds out why the server refused an answer: another was first, or it does not fit. */
async function explain(entry: OutgoingAnswers, error: unknown): Promise<void> {
  const { thread, attempts } = entry;
  const why = error instanceof Error ? error.message : String(error);
  const status = error instanceof ApiProblem ? error.status : 0;
  if (status === 422 || status === 403 || status === 401) return refuse(entry, why);
  const named = firstOf(error);
  if (named && attempts === 1) take(entry, named);
  // A thread that is running now may be running with the answer of another person, which is stored a moment later.
  for (let looks = 0; looks < 6; looks += 1) {
    const raised = await lookUp(thread);
    // The page cannot say what became of the answer before the server is back.
    if (!raised) return named ? take(entry, named) : sendLater(entry);
    const closed = closedOf(entry, raised);
    if (closed) {
      // The server took the first attempt, and its response was lost.
      const isOurs = attempts > 1 && (await isOwn(entry, closed));
      return isOurs ? markSent(entry) : take(entry, closed);
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  if (named) return take(entry, named);
  refuse(entry, status === 409 ? text.busy : why);
}

/** Reads who was first from a refusal, which comes before the answer is stored. */
function firstOf(error: unknown): FirstAnswer | undefined {
  if (!(error instanceof ApiProblem) || error.status !== 409 || !isObject(error.body)) return undefined;
  const { answered_by: by, answered_at: at } = error.body;
  if (by === undefined && at === undefined) return undefined;
  return {
    status: "answered",
    answered_by: typeof by === "string" ? by : null,
    answered_at: typeof at === "string" ? at : null,
  };
}

function refuse(entry: OutgoingAnswers, why: string): void {
  setPhase(entry.thread, entry.batch, { name: "refused", why });
}

function take(entry: OutgoingAnswers, by: FirstAnswer): void {
  const isKnown = entryOf(entry.thread)?.phase.name === "taken";
  setPhase(entry.thread, entry.batch, { name: "taken", by });
  if (!isKnown) showMessage(firstText(by), "warn", entry.thread);
}

async function lookUp(thread: string): Promise<RaisedInterrupt[] | undefined> {
  try {
    return await queryClient.fetchQuery({ ...interruptsQuery(thread), staleTime: 0, retry: false });
  } catch {
    return undefined;
  }
}

function closedOf({ given }: OutgoingAnswers, raised: RaisedInterrupt[]): RaisedInterrupt | undefined {
  return raised.find(
    ({ id, status }) => status !== "open" && given.some(({ item }) => item.interrupt.id === id),
  );
}

/** Whether the server took our answer. Two people may give the same one, so names decide where callers have names. */
async function isOwn({ given }: OutgoingAnswers, raised: RaisedInterrupt): Promise<boolean> {
  const mine = given.find(({ item }) => item.interrupt.id === raised.id);
  if (!mine || raised.status !== "answered" || !isSameAnswer(mine.answer, raised.answer)) return false;
  const me = await queryClient.fetchQuery(meQuery).catch(() => undefined);
  return me?.is_authenticated !== true || raised.answered_by === me.principal;
}

/** Two answers may be accepted at the same moment. The run of the second then fails, and its sender learns who was first. */
async function confirm(entry: OutgoingAnswers, run: Run): Promise<void> {
  for (let looks = 0; looks < 20; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(200 * (looks + 1), 1500)));
    const raised = await lookUp(entry.thread);
    const closed = raised && closedOf(entry, raised);
    if (!closed) continue;
    if (await isOwn(entry, closed)) return;
    const mine = await queryClient.fetchQuery(meQuery).catch(() => undefined);
    const path = `/threads/${encodeURIComponent(entry.thread)}/runs/${encodeURIComponent(run.run_id)}`;
    const ended = await request<Run>(path).catch(() => undefined);
    const isOther = mine?.is_authenticated === true && closed.answered_by !== mine.principal;
    if (isOther || ended?.status === "error") take(entry, closed);
    return;
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns what became of the answer to an interrupt; `undefined` if none was given. */
export function outgoingOf(item: InboxItem): OutgoingAnswers | undefined {
  const entry = outgoing.get(item.thread_id);
  return entry?.given.some((given) => given.item.interrupt.id === item.interrupt.id) ? entry : undefined;
}

export function useOutgoing(item: InboxItem): OutgoingAnswers | undefined {
  return useSyncExternalStore(subscribe, () => outgoingOf(item));
}

/** Returns all answers that are on their way or were just sent. */
export function useOutbox(): ReadonlyMap<string, OutgoingAnswers> {
  return useSyncExternalStore(subscribe, () => outgoing);
}

/** Asks before the tab is closed with answers that the server does not have. */
globalThis.addEventListener?.("beforeunload", (event) => {
  const isUnsent = ({ phase }: OutgoingAnswers) => ["held", "sending", "away"].includes(phase.name);
  if (all().some(isUnsent)) event.preventDefault();
});
