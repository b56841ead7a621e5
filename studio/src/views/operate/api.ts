/** What the views for operators ask the server for, and what they make it do. */

import { queryOptions } from "@tanstack/react-query";

import { LIVE_MS, queryClient } from "../../api/cache.ts";
import { ApiProblem, request, requestPage } from "../../api/client.ts";
import { isObject, type Json, type JsonObject } from "../../api/json.ts";
import type { components } from "../../api/schema.ts";
import type {
  Budget,
  Cron,
  Delivery,
  Permission,
  Run,
  RunQueue,
  StoreItem,
  Thread,
  ThreadTrace,
} from "../../api/types.ts";
import { runsOfTrace, type UsedRun } from "../../pure/usage.ts";

type Schemas = components["schemas"];
export type ApiKey = Schemas["ApiKey"];
export type ApiKeyWithSecret = Schemas["ApiKeyWithSecret"];
export type AuditPage = Schemas["AuditPage"];
export type AuditEntry = AuditPage["entries"][number];

const id = encodeURIComponent;
export const PAGE_SIZE = 50;

/** Asks again for whatever these views show. */
export function refreshOperate(name: string): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ["operate", name] });
}

/** Number of runs that the queue lists. */
export const QUEUE_SIZE = 500;

export const queueQuery = queryOptions({
  queryKey: ["operate", "queue"],
  queryFn: ({ signal }) => request<RunQueue>("/superstep/queue", { query: { limit: QUEUE_SIZE }, signal }),
  refetchInterval: LIVE_MS * 2,
});

export interface CronFilter {
  assistant?: string | undefined;
  enabled?: boolean | undefined;
  offset: number;
}

export const cronsQuery = (filter: CronFilter) =>
  queryOptions({
    queryKey: ["operate", "crons", filter],
    queryFn: ({ signal }) => {
      const json: JsonObject = {
        limit: PAGE_SIZE,
        offset: filter.offset,
        sort_by: "next_run_date",
        sort_order: "asc",
      };
      if (filter.assistant) json.assistant_id = filter.assistant;
      if (filter.enabled !== undefined) json.enabled = filter.enabled;
      return requestPage<Cron>("/runs/crons/search", { method: "POST", json, signal });
    },
    refetchInterval: LIVE_MS * 4,
    placeholderData: (before) => before,
  });

export const cronQuery = (cron: string) =>
  queryOptions({
    queryKey: ["operate", "crons", "one", cron],
    queryFn: ({ signal }) => request<Cron>(`/runs/crons/${id(cron)}`, { signal }),
    refetchInterval: LIVE_MS * 4,
  });

/** What came of a tick of a cron. */
export interface CronResult {
  thread: string;
  startedAt: string;
  status: string;
  error: string | undefined;
}

const RESULTS = 10;

/** The newest runs of a cron: those of its thread that name it, or the threads that its runs got. */
export const cronResultsQuery = (cron: Cron) =>
  queryOptions({
    queryKey: ["operate", "crons", "results", cron.cron_id],
    queryFn: ({ signal }) =>
      cron.thread_id ? runResults(cron, cron.thread_id, signal) : threadResults(cron, signal),
    refetchInterval: LIVE_MS * 4,
  });

async function runResults(cron: Cron, thread: string, signal: AbortSignal): Promise<CronResult[]> {
  const runs = await request<Run[]>(`/threads/${id(thread)}/runs`, { query: { limit: 100 }, signal });
  return runs
    .filter((run) => run.metadata.cron_id === cron.cron_id)
    .slice(0, RESULTS)
    .map((run) => ({ thread, startedAt: run.created_at, status: run.status, error: undefined }));
}

async function threadResults(cron: Cron, signal: AbortSignal): Promise<CronResult[]> {
  const json = {
    metadata: { cron_id: cron.cron_id },
    limit: RESULTS,
    sort_by: "created_at",
    sort_order: "desc",
    select: ["thread_id", "created_at", "status", "error", "metadata", "updated_at"],
  };
  const threads = await request<Thread[]>("/threads/search", { method: "POST", json, signal });
  return threads.map((thread) => ({
    thread: thread.thread_id,
    startedAt: thread.created_at,
    status: thread.status,
    error: errorText(thread.error),
  }));
}

/** Returns what an error of the API says, whatever its form. */
export function errorText(error: unknown): string | undefined {
  if (error === null || error === undefined) return undefined;
  if (typeof error === "string") return error;
  const message = isObject(error) ? (error.message ?? error.error) : undefined;
  return typeof message === "string" ? message : JSON.stringify(error);
}

export async function createCron(thread: string | undefined, json: JsonObject): Promise<Cron> {
  const path = thread ? `/threads/${id(thread)}/runs/crons` : "/runs/crons";
  return await request<Cron>(path, { method: "POST", json });
}

export async function changeCron(cron: string, json: JsonObject): Promise<Cron> {
  return await request<Cron>(`/runs/crons/${id(cron)}`, { method: "PATCH", json });
}

export async function deleteCron(cron: string): Promise<void> {
  await request(`/runs/crons/${id(cron)}`, { method: "DELETE" });
}

export const deliveriesQuery = (status: string | undefined, run: string | undefined, offset: number) =>
  queryOptions({
    queryKey: ["operate", "deliveries", { status, run, offset }],
    queryFn: ({ signal }) =>
      request<Delivery[]>("/superstep/deliveries", {
        // One more than is shown says whether there is another page.
        query: { status, run_id: run, limit: PAGE_SIZE + 1, offset },
        signal,
      }),
    refetchInterval: LIVE_MS * 2,
    placeholderData: (before) => before,
  });

export async function repeatDelivery(delivery: string): Promise<void> {
  await request(`/superstep/deliveries/${id(delivery)}/repeat`, { method: "POST" });
}

export const NAMESPACES_MAX = 1000;

export const namespacesQuery = (prefix: string[]) =>
  queryOptions({
    queryKey: ["operate", "store", "namespaces", prefix],
    queryFn: ({ signal }) =>
      request<{ namespaces: string[][] }>("/store/namespaces", {
        method: "POST",
        json: { prefix, limit: NAMESPACES_MAX },
        signal,
      }),
    placeholderData: (before) => before,
  });

export const itemsQuery = (namespace: string[], filter: JsonObject | undefined, offset: number) =>
  queryOptions({
    queryKey: ["operate", "store", "items", { namespace, filter, offset }],
    queryFn: async ({ signal }) => {
      const json = { namespace_prefix: namespace, filter: filter ?? null, limit: PAGE_SIZE + 1, offset };
      const found = await request<{ items: StoreItem[] }>("/store/items/search", {
        method: "POST",
        json,
        signal,
      });
      return found.items;
    },
    placeholderData: (before) => before,
  });

/** An item by its name. Reading one may extend its life, so it is not asked for again and again. */
export const itemQuery = (namespace: string, key: string) =>
  queryOptions({
    queryKey: ["operate", "store", "item", { namespace, key }],
    queryFn: ({ signal }) => readItem(namespace, key, signal),
    refetchOnWindowFocus: false,
  });

export async function readItem(
  namespace: string,
  key: string,
  signal?: AbortSignal,
): Promise<StoreItem | null> {
  return await request<StoreItem | null>("/store/items", {
    query: { namespace, key },
    ...(signal && { signal }),
  });
}

export async function putItem(namespace: string[], key: string, value: JsonObject): Promise<void> {
  await request("/store/items", { method: "PUT", json: { namespace, key, value } });
}

export async function deleteItem(namespace: string[], key: string): Promise<void> {
  await request("/store/items", { method: "DELETE", json: { namespace, key } });
}

export const budgetsQuery = (offset: number) =>
  queryOptions({
    queryKey: ["operate", "budgets", offset],
    queryFn: ({ signal }) =>
      request<Budget[]>("/superstep/budgets", { query: { limit: PAGE_SIZE + 1, offset }, signal }),
    refetchInterval: LIVE_MS * 2,
    placeholderData: (before) => before,
  });

const RAISE = "/superstep/budgets/raise";

/** The permissions that raising a budget needs; `null` if this server cannot raise one. */
export const raiseQuery = queryOptions({
  queryKey: ["operate", "openapi", "raise"],
  queryFn: async ({ signal }): Promise<Permission[] | null> => {
    const document = await request<Json>("/openapi.json", { signal });
    const paths = isObject(document) ? document.paths : undefined;
    const route = isObject(paths) ? paths[RAISE] : undefined;
    const post = isObject(route) ? route.post : undefined;
    if (!isObject(post)) return null;
    return (post["x-superstep-permissions"] ?? []) as Permission[];
  },
  staleTime: Number.POSITIVE_INFINITY,
});

export async function raiseBudget(budget: Budget, limits: Record<string, number>): Promise<void> {
  const json: JsonObject = { level: budget.level, limits };
  if (budget.thread_id) json.thread_id = budget.thread_id;
  if (budget.run_id) json.run_id = budget.run_id;
  await request(RAISE, { method: "POST", json });
}

export interface ReadUsage {
  runs: UsedRun[];
  threads: number;
  failed: number;
  /** The number of all threads, if the server said it. */
  total: number | undefined;
  readAt: number;
}

/** Traces that are asked for at once: enough to be fast, and other requests are not kept waiting. */
const TRACES_AT_ONCE = 4;

/** Reads the traces of the newest threads, and keeps of each what its runs used. */
export const usageQuery = (limit: number, onProgress: (done: number, all: number) => void) =>
  queryOptions({
    queryKey: ["operate", "usage", limit],
    queryFn: async ({ signal }): Promise<ReadUsage> => {
      const json = { limit, sort_by: "updated_at", sort_order: "desc", select: ["thread_id"] };
      const page = await requestPage<{ thread_id: string }>("/threads/search", {
        method: "POST",
        json,
        signal,
      });
      const used: ReadUsage = { runs: [], threads: 0, failed: 0, total: page.total, readAt: Date.now() };
      const waiting = page.items.map((thread) => thread.thread_id);
      onProgress(0, page.items.length);
      const work = async () => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          await readTrace(next, used, signal);
          onProgress(used.threads + used.failed, page.items.length);
        }
      };
      await Promise.all(Array.from({ length: TRACES_AT_ONCE }, work));
      return used;
    },
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

async function readTrace(thread: string, used: ReadUsage, signal: AbortSignal): Promise<void> {
  try {
    const trace = await request<ThreadTrace>(`/superstep/threads/${id(thread)}/trace`, { signal });
    used.runs.push(...runsOfTrace(trace));
    used.threads++;
  } catch (error) {
    // A thread may be deleted in between. If the server is away, the whole reading fails.
    if (!(error instanceof ApiProblem) || error.isTransient) throw error;
    used.failed++;
  }
}

export const keysQuery = (offset: number) =>
  queryOptions({
    queryKey: ["operate", "keys", offset],
    queryFn: ({ signal }) =>
      request<ApiKey[]>("/superstep/keys", { query: { limit: PAGE_SIZE + 1, offset }, signal }),
    placeholderData: (before) => before,
  });

export async function createKey(json: Schemas["ApiKeyCreate"]): Promise<ApiKeyWithSecret> {
  return await request<ApiKeyWithSecret>("/superstep/keys", { method: "POST", json });
}

export async function rotateKey(key: string, graceSeconds: number): Promise<ApiKeyWithSecret> {
  const json = { grace_seconds: graceSeconds };
  return await request<ApiKeyWithSecret>(`/superstep/keys/${id(key)}/rotate`, { method: "POST", json });
}

export async function revokeKey(key: string): Promise<void> {
  await request(`/superstep/keys/${id(key)}`, { method: "DELETE" });
}

export const AUDIT_SIZE = 100;

/** The entries before a number, or the newest ones. The server lists them from a number upwards. */
export const auditQuery = (before: number | undefined) =>
  queryOptions({
    queryKey: ["operate", "audit", before ?? "newest"],
    queryFn: async ({ signal }): Promise<AuditPage> => {
      const read = (after: number, limit: number) =>
        request<AuditPage>("/superstep/audit", { query: { after, limit }, signal });
      const end = before ?? (await read(0, 1)).head.seq + 1;
      const after = Math.max(0, end - 1 - AUDIT_SIZE);
      return await read(after, Math.max(1, end - 1 - after));
    },
    refetchInterval: before === undefined ? LIVE_MS * 4 : false,
    placeholderData: (page) => page,
  });

export const readyQuery = queryOptions({
  queryKey: ["operate", "health", "ready"],
  queryFn: async ({ signal }) => (await request<{ ready: boolean }>("/superstep/ready", { signal })).ready,
  refetchInterval: 3000,
  retry: false,
});

/** How long the stores took to answer, in milliseconds. */
export const storesQuery = queryOptions({
  queryKey: ["operate", "health", "stores"],
  queryFn: async ({ signal }) => {
    const start = performance.now();
    await request("/ok", { query: { check_db: 1 }, signal });
    return Math.round(performance.now() - start);
  },
  refetchInterval: 3000,
  retry: false,
});

export const infoQuery = queryOptions({
  queryKey: ["operate", "health", "info"],
  queryFn: ({ signal }) => request<Schemas["ServerInfo"]>("/info", { signal }),
  refetchInterval: 10_000,
});

export const metricsQuery = queryOptions({
  queryKey: ["operate", "health", "metrics"],
  queryFn: ({ signal }) => request<Record<string, number>>("/metrics", { query: { format: "json" }, signal }),
  refetchInterval: 3000,
});
