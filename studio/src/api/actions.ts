/** What the page can make the server do. Every action is one call of the public API. */

import { queryClient } from "./cache.ts";
import { newKey, request } from "./client.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Run, Thread } from "./types.ts";

const id = encodeURIComponent;

export async function createThread(metadata: JsonObject = {}, key: string = newKey()): Promise<Thread> {
  return await request<Thread>("/threads", { method: "POST", json: { metadata }, key });
}

/** Starts a run in the background. Requests with the same key start one run, so a lost response does no harm. */
export async function startRun(
  thread: string,
  assistant: string,
  input: Json,
  extra: JsonObject = {},
  key: string = newKey(),
): Promise<Run> {
  const json = { assistant_id: assistant, input, multitask_strategy: "enqueue", ...extra };
  return await after(thread, request<Run>(`/threads/${id(thread)}/runs`, { method: "POST", json, key }));
}

/** Answers open interrupts of a thread, by their ids. All of them are answered, or none. */
export async function answerInterrupts(
  thread: string,
  assistant: string,
  answers: Record<string, Json>,
  key: string = newKey(),
): Promise<Run> {
  const json = { assistant_id: assistant, command: { resume: answers }, multitask_strategy: "reject" };
  return await after(thread, request<Run>(`/threads/${id(thread)}/runs`, { method: "POST", json, key }));
}

export async function cancelRun(thread: string, run: string): Promise<void> {
  await after(thread, request(`/threads/${id(thread)}/runs/${id(run)}/cancel`, { method: "POST" }));
}

/** Asks again for whatever is known about a thread. */
export async function refreshThread(thread: string): Promise<void> {
  await queryClient.invalidateQueries({
    predicate: ({ queryKey }) =>
      queryKey[1] === thread || queryKey[0] === "inbox" || queryKey[0] === "threads",
  });
}

async function after<T>(thread: string, done: Promise<T>): Promise<T> {
  try {
    return await done;
  } finally {
    void refreshThread(thread);
  }
}
