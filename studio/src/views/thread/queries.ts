import { queryOptions } from "@tanstack/react-query";

import { request } from "../../api/client.ts";
import type { JsonObject } from "../../api/json.ts";
import type { StateDiff } from "../../api/types.ts";
import type { ComparedWith } from "../../pure/thread_filter.ts";

const id = encodeURIComponent;

/** What a step changed: the difference of a checkpoint and the one that it follows. Both never change. */
export const stepDiffQuery = (thread: string, checkpoint: string | undefined) =>
  queryOptions({
    queryKey: ["diff", thread, "step", checkpoint],
    queryFn: ({ signal }) => requestDiff(thread, { to: checkpoint ?? "" }, signal),
    enabled: checkpoint !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The difference of what is compared with and a checkpoint of the thread. */
export const compareQuery = (thread: string, checkpoint: string, other: ComparedWith) =>
  queryOptions({
    queryKey: ["diff", thread, checkpoint, other],
    queryFn: ({ signal }) => {
      const from: JsonObject = other.checkpoint ? { from: other.checkpoint } : {};
      if (other.thread === undefined) return requestDiff(thread, { ...from, to: checkpoint }, signal);
      return requestDiff(other.thread, { ...from, to: checkpoint, other_thread: thread }, signal);
    },
    // Without a checkpoint, the newest of the other thread is compared, which may change.
    staleTime: other.checkpoint ? Number.POSITIVE_INFINITY : 1000,
    placeholderData: (before) => before,
  });

function requestDiff(thread: string, json: JsonObject, signal: AbortSignal): Promise<StateDiff> {
  return request<StateDiff>(`/superstep/threads/${id(thread)}/diff`, { method: "POST", json, signal });
}
