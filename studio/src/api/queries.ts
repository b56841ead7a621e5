/** What views ask the server for, each under one key of the cache. */

import { queryOptions, replaceEqualDeep } from "@tanstack/react-query";
import { weightOf } from "../pure/json_weight.ts";
import { joinTree } from "../pure/tree_pages.ts";
import { INBOX_MS, LIVE_MS, ROW_MS } from "./cache.ts";
import { ApiProblem, request, requestPage } from "./client.ts";
import type { Json, JsonObject } from "./json.ts";
import type {
  Assistant,
  CheckpointTree,
  DeclaredGraph,
  GraphSchema,
  InboxItem,
  Me,
  RaisedInterrupt,
  Run,
  StateLabels,
  Thread,
  ThreadFile,
  ThreadState,
  ThreadTrace,
} from "./types.ts";

const id = encodeURIComponent;

/** The fields of a thread without its values, which may be megabytes. */
const ROW = ["thread_id", "created_at", "updated_at", "metadata", "status", "interrupts", "error"];

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => request<Me>("/superstep/me", { signal }),
  staleTime: 60_000,
});

export interface InboxFilter {
  graph?: string | undefined;
  limit: number;
  offset: number;
}

export const inboxQuery = (filter: InboxFilter) =>
  queryOptions({
    queryKey: ["inbox", filter],
    queryFn: ({ signal }) =>
      requestPage<InboxItem>("/superstep/inbox", {
        query: { graph_id: filter.graph, limit: filter.limit, offset: filter.offset },
        // The page learns from it whether the server is there.
        timeoutMs: 5000,
        signal,
      }),
    refetchInterval: INBOX_MS,
    placeholderData: (before) => before,
  });

export interface ThreadFilter {
  status?: string | undefined;
  graph?: string | undefined;
  /** Field and value of the metadata. */
  metadata?: JsonObject | undefined;
  ids?: string[] | undefined;
  sortBy?: string | undefined;
  limit: number;
  offset: number;
}

export const threadsQuery = (filter: ThreadFilter) =>
  queryOptions({
    queryKey: ["threads", filter],
    queryFn: ({ signal }) => {
      const metadata = { ...filter.metadata, ...(filter.graph && { graph_id: filter.graph }) };
      const json: JsonObject = {
        metadata,
        limit: filter.limit,
        offset: filter.offset,
        sort_by: filter.sortBy ?? "updated_at",
        sort_order: "desc",
        select: ROW,
      };
      if (filter.status) json.status = filter.status;
      if (filter.ids) json.ids = filter.ids;
      return requestPage<Thread>("/threads/search", { method: "POST", json, signal });
    },
    refetchInterval: LIVE_MS * 2,
    placeholderData: (before) => before,
  });

/** A thread without its values. When it changes, `watchThreads` asks for what else is on screen of it again. */
export const threadQuery = (thread: string) =>
  queryOptions({
    queryKey: ["thread", thread],
    queryFn: async ({ signal }) => {
      const json = { ids: [thread], select: ROW, limit: 1 };
      const [found] = await request<Thread[]>("/threads/search", { method: "POST", json, signal });
      if (!found) throw new ApiProblem(404, `Thread \`${thread}\` not found`);
      return found;
    },
    refetchInterval: ROW_MS,
  });

/** A state of a thread: the newest one, or that of a checkpoint, which never changes. */
export const stateQuery = (thread: string, checkpoint?: string | undefined) =>
  queryOptions({
    queryKey: ["state", thread, checkpoint ?? "newest"],
    queryFn: ({ signal }) => {
      const path = checkpoint ? `/state/${id(checkpoint)}` : "/state";
      return request<ThreadState>(`/threads/${id(thread)}${path}`, { query: { subgraphs: true }, signal });
    },
    staleTime: checkpoint ? Number.POSITIVE_INFINITY : 500,
    structuralSharing: shareSmall,
    placeholderData: (before) => before,
  });

/** The largest page of a tree that the server answers with. */
const TREE_PAGE = 1000;
/** How many of the newest checkpoints are asked for when the others are known. */
const TREE_RECENT = 100;

/** The checkpoints of a thread as far as they were loaded: the newest page, and the older ones that `useOlderCheckpoints` adds. */
export const treeQuery = (thread: string) =>
  queryOptions({
    queryKey: ["tree", thread],
    queryFn: async ({ client, signal }): Promise<CheckpointTree> => {
      const known = () => client.getQueryData<CheckpointTree>(["tree", thread]);
      if (known()) {
        const recent = await treePage(thread, { limit: TREE_RECENT }, signal);
        const joined = joinTree(recent, known());
        if (joined) return joined;
      }
      const newest = await treePage(thread, { limit: TREE_PAGE }, signal);
      return joinTree(newest, known()) ?? newest;
    },
    structuralSharing: shareSmall,
  });

/** The checkpoints before one, which do not change. */
export const olderTreeQuery = (thread: string, before: string) =>
  queryOptions({
    queryKey: ["older-tree", thread, before],
    queryFn: ({ signal }) => treePage(thread, { limit: TREE_PAGE, before }, signal),
    staleTime: Number.POSITIVE_INFINITY,
    // They are in the tree by then.
    gcTime: 0,
    structuralSharing: false,
    refetchInterval: (query) => (query.state.status === "error" ? LIVE_MS * 4 : false),
  });

const treePage = (thread: string, query: { limit: number; before?: string }, signal: AbortSignal) =>
  request<CheckpointTree>(`/superstep/threads/${id(thread)}/tree`, { query, signal });

export const traceQuery = (thread: string) =>
  queryOptions({
    queryKey: ["trace", thread],
    queryFn: ({ signal }) => request<ThreadTrace>(`/superstep/threads/${id(thread)}/trace`, { signal }),
    structuralSharing: shareSmall,
  });

export const labelsQuery = (thread: string, checkpoint?: string | undefined) =>
  queryOptions({
    queryKey: ["labels", thread, checkpoint ?? "newest"],
    queryFn: ({ signal }) =>
      request<StateLabels>(`/superstep/threads/${id(thread)}/labels`, {
        query: { checkpoint_id: checkpoint },
        signal,
      }),
    staleTime: checkpoint ? Number.POSITIVE_INFINITY : 1000,
  });

export const interruptsQuery = (thread: string) =>
  queryOptions({
    queryKey: ["interrupts", thread],
    queryFn: ({ signal }) =>
      request<RaisedInterrupt[]>(`/superstep/threads/${id(thread)}/interrupts`, {
        query: { limit: 1000 },
        signal,
      }),
  });

export const runsQuery = (thread: string) =>
  queryOptions({
    queryKey: ["runs", thread],
    queryFn: ({ signal }) => request<Run[]>(`/threads/${id(thread)}/runs`, { query: { limit: 100 }, signal }),
  });

export const filesQuery = (thread: string) =>
  queryOptions({
    queryKey: ["files", thread],
    queryFn: ({ signal }) => request<ThreadFile[]>(`/superstep/threads/${id(thread)}/files`, { signal }),
    refetchInterval: LIVE_MS * 4,
  });

export const assistantsQuery = queryOptions({
  queryKey: ["assistants"],
  queryFn: ({ signal }) =>
    request<Assistant[]>("/assistants/search", { method: "POST", json: { limit: 1000 }, signal }),
  staleTime: 10_000,
});

/** The declaration of a graph: it changes with the program only. */
export const graphQuery = (assistant: string) =>
  queryOptions({
    queryKey: ["graph", assistant],
    queryFn: ({ signal }) =>
      request<DeclaredGraph>(`/assistants/${id(assistant)}/graph`, { query: { xray: true }, signal }),
    staleTime: 60_000,
  });

export const schemasQuery = (assistant: string) =>
  queryOptions({
    queryKey: ["schemas", assistant],
    queryFn: ({ signal }) => request<GraphSchema>(`/assistants/${id(assistant)}/schemas`, { signal }),
    staleTime: 60_000,
  });

/** Characters of JSON that are compared with what was there before. */
const COMPARED_MAX = 300_000;

/** Keeps the parts that are as they were, so views can compare them by identity. To compare megabytes would stop the page. */
function shareSmall(before: unknown, now: unknown): unknown {
  return weightOf(now as Json, COMPARED_MAX) > COMPARED_MAX ? now : replaceEqualDeep(before, now);
}
