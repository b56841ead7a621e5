/** Two versions on the same inputs: the runs, and what came of them. */

import { queryOptions } from "@tanstack/react-query";

import { request } from "../../api/client.ts";
import { isObject, type Json, type JsonObject } from "../../api/json.ts";
import type { CallTotals, Run, StateDiff, Thread, ThreadState, ThreadTrace } from "../../api/types.ts";
import { type Change, realChanges } from "../../pure/first_difference.ts";

const id = encodeURIComponent;

/** An input, and the thread whose files it needs. */
export interface ComparedInput {
  input: Json;
  filesFrom: string | undefined;
}

/** Runs of both versions on one input. In a draft, so that a reload finds them again. */
export interface ComparedRuns extends JsonObject {
  left: { thread: string; run: string };
  right: { thread: string; run: string };
}

/** The inputs of the newest threads of an assistant. */
export async function lastInputs(assistant: string, count: number): Promise<ComparedInput[]> {
  const json = { metadata: { assistant_id: assistant }, limit: count, select: ["thread_id"] };
  const threads = await request<Thread[]>("/threads/search", { method: "POST", json });
  const found = await Promise.all(
    threads.map(async ({ thread_id: thread }): Promise<ComparedInput[]> => {
      const runs = await request<Run[]>(`/threads/${id(thread)}/runs`, { query: { limit: 1000 } });
      // The newest run comes first; the input is that of the oldest.
      const inputs = runs.flatMap(({ kwargs }) => inputOf(kwargs));
      const input = inputs.at(-1);
      return input === undefined ? [] : [{ input, filesFrom: thread }];
    }),
  );
  return found.flat();
}

function inputOf(kwargs: unknown): Json[] {
  const input = isObject(kwargs) ? kwargs.input : null;
  return input === null || input === undefined ? [] : [input];
}

export interface VersionResult {
  status: Run["status"];
  state: ThreadState | undefined;
  cost: CallTotals | undefined;
}

const ENDED = new Set<Run["status"]>(["success", "error", "timeout", "interrupted"]);

export function hasEnded(result: VersionResult | undefined): boolean {
  return result !== undefined && ENDED.has(result.status);
}

/** What came of a run. It is asked for until the run ends. */
export const resultQuery = ({ thread, run }: ComparedRuns["left"]) =>
  queryOptions({
    queryKey: ["version-result", thread, run],
    queryFn: async ({ signal }): Promise<VersionResult> => {
      const base = `/threads/${id(thread)}`;
      const { status } = await request<Run>(`${base}/runs/${id(run)}`, { signal });
      if (!ENDED.has(status)) return { status, state: undefined, cost: undefined };
      const [state, trace] = await Promise.all([
        request<ThreadState>(`${base}/state`, { signal }),
        request<ThreadTrace>(`/superstep${base}/trace`, { signal }),
      ]);
      return { status, state, cost: trace.cost };
    },
    refetchInterval: ({ state }) => (hasEnded(state.data) ? false : 1000),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Where two results differ, without ids. */
export const resultDiffQuery = ({ left, right }: ComparedRuns) =>
  queryOptions({
    queryKey: ["version-diff", left.thread, right.thread],
    queryFn: async ({ signal }): Promise<Change[]> => {
      const json = { other_thread: right.thread };
      const path = `/superstep/threads/${id(left.thread)}/diff`;
      return realChanges((await request<StateDiff>(path, { method: "POST", json, signal })).changes);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
