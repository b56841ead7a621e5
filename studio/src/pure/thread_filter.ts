/** Filters of the list of threads, as they are in the address. */

import type { Json, JsonObject } from "../api/json.ts";
import type { ThreadFilter } from "../api/queries.ts";
import type { Thread } from "../api/types.ts";

export const STATUSES = ["busy", "interrupted", "error", "idle"] as const;
export const SORTS = ["updated_at", "created_at", "status", "thread_id"] as const;
export type ThreadSort = (typeof SORTS)[number];

/** How many threads a page has. */
export const PAGE_LENGTH = 200;

/** The filter as the visitor entered it; texts, so that what is not valid yet is not lost. */
export interface FilterFields {
  status: string;
  graph: string;
  /** `field=value`, several with commas. */
  metadata: string;
  /** Ids of threads, with spaces or commas. */
  ids: string;
  sort: ThreadSort;
  /** From 1. */
  page: number;
}

export function fieldsOf(query: URLSearchParams): FilterFields {
  const sort = SORTS.find((each) => each === query.get("sort"));
  const page = Number.parseInt(query.get("page") ?? "", 10) || 1;
  return {
    status: STATUSES.find((each) => each === query.get("status")) ?? "",
    graph: query.get("graph") ?? "",
    metadata: query.get("metadata") ?? "",
    ids: query.get("ids") ?? "",
    sort: sort ?? "updated_at",
    page: Math.max(page, 1),
  };
}

/** Returns the parts of the address for a filter. What is as by default is left out. */
export function queryOf(fields: FilterFields): Record<string, string | undefined> {
  return {
    status: fields.status || undefined,
    graph: fields.graph || undefined,
    metadata: fields.metadata.trim() || undefined,
    ids: fields.ids.trim() || undefined,
    sort: fields.sort === "updated_at" ? undefined : fields.sort,
    page: fields.page === 1 ? undefined : String(fields.page),
  };
}

export function isFiltered(fields: FilterFields): boolean {
  return Boolean(fields.status || fields.graph || fields.metadata.trim() || fields.ids.trim());
}

export interface FilterProblems {
  /** What in the metadata is not `field=value`. */
  metadata?: string;
  /** What is not the id of a thread. */
  ids?: string;
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Returns what to ask the server for, and what of it cannot be asked. */
export function filterOf(fields: FilterFields): { filter: ThreadFilter; problems: FilterProblems } {
  const problems: FilterProblems = {};
  const filter: ThreadFilter = { limit: PAGE_LENGTH, offset: (fields.page - 1) * PAGE_LENGTH };
  if (fields.status) filter.status = fields.status;
  if (fields.graph) filter.graph = fields.graph;
  if (fields.sort !== "updated_at") filter.sortBy = fields.sort;
  const ids = fields.ids.split(/[\s,]+/).filter(Boolean);
  const wrong = ids.find((id) => !UUID.test(id));
  if (wrong !== undefined) problems.ids = wrong;
  else if (ids.length > 0) filter.ids = ids;
  const metadata = parseMetadata(fields.metadata);
  if (typeof metadata === "string") problems.metadata = metadata;
  else if (metadata) filter.metadata = metadata;
  return { filter, problems };
}

/** Reads `user=anna, tier=3, note="a, b"`. Returns the part that is not valid as text, and nothing for nothing. */
export function parseMetadata(text: string): JsonObject | string | undefined {
  const fields: JsonObject = {};
  // A value in quotes may contain commas.
  const parts = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,"]|")+/g) ?? [];
  for (const part of parts) {
    if (part.trim() === "") continue;
    const equals = part.indexOf("=");
    const name = part.slice(0, Math.max(0, equals)).trim();
    if (!name) return part.trim();
    // A computed name such as `__proto__` is a field, too.
    Object.defineProperty(fields, name, {
      value: parseValue(part.slice(equals + 1).trim()),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** A number, `true`, `false`, `null` or a text in quotes is what it is in JSON; everything else is text. */
function parseValue(text: string): Json {
  if (!/^(-?\d|true$|false$|null$|")/.test(text)) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** What a thread does, in words of people. */
export type ThreadActivity = "new" | "running" | "waiting" | "paused" | "failed" | "finished";

export function activityOf(thread: Pick<Thread, "status" | "interrupts" | "metadata">): ThreadActivity {
  if (thread.status === "busy") return "running";
  if (thread.status === "error") return "failed";
  if (thread.status === "interrupted") return interruptCount(thread) > 0 ? "waiting" : "paused";
  return "graph_id" in thread.metadata ? "finished" : "new";
}

export function interruptCount(thread: Pick<Thread, "interrupts">): number {
  return Object.values(thread.interrupts ?? {}).reduce((sum, each) => sum + each.length, 0);
}

export interface ComparedWith {
  /** Another thread; `undefined` for the same. */
  thread: string | undefined;
  /** `undefined` for the newest. */
  checkpoint: string | undefined;
}

/** Reads `<checkpoint>`, `<thread>:<checkpoint>` or `<thread>:`. */
export function parseCompare(text: string): ComparedWith | undefined {
  const [first, second, ...rest] = text.trim().split(":");
  if (!first || rest.length > 0) return undefined;
  if (second === undefined) return { thread: undefined, checkpoint: first };
  return { thread: first, checkpoint: second || undefined };
}

export function formatCompare({ thread, checkpoint }: ComparedWith): string {
  return thread === undefined ? (checkpoint ?? "") : `${thread}:${checkpoint ?? ""}`;
}
