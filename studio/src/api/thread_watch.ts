/**
 * Sees when a thread changed. The page asks for the row of a thread often, which is small. What else it knows of the thread may be
 * megabytes: it asks for that again only if the row changed or a run is active, and the less often the longer an answer takes.
 */

import type { Query, QueryClient } from "@tanstack/react-query";

import type { Thread } from "./types.ts";

/** What is asked for again, by the first part of its key. The second is the thread. */
const PARTS = ["state", "tree", "trace", "interrupts", "runs", "labels"];
/** How long after a change more may follow that the row does not show, such as the costs of the last call. */
const SETTLE_MS = 2500;
/** A thread that changed this recently may be changing. The clocks of server and page differ. */
const RECENT_MS = 60_000;
/** Of the time in which a run is active, requests for one part take at most one in this many. */
const SHARE = 8;

/** What is known of the changes of a thread. */
interface Changes {
  version: string;
  /** When the row changed. */
  changedAt: number;
  /** What was asked for before is out of date. */
  staleAt: number;
  outages: number;
}

interface Fetched {
  startedAt: number;
  tookMs: number;
}

/** Asks again for the parts of threads that changed, as long as they are on screen. Returns a function that ends it. */
export function watchThreads(client: QueryClient, now: () => number = () => performance.now()): () => void {
  const cache = client.getQueryCache();
  const known = new WeakMap<Query, Changes>();
  const fetches = new WeakMap<Query, Fetched>();

  const look = (query: Query) => {
    const row = query.state.data as Thread;
    const before = known.get(query);
    const at = now();
    const changes = changesOf(before, row, query.state.errorUpdateCount, at);
    known.set(query, changes);
    // A change that was just seen does not wait.
    const canWait = row.status === "busy" || (isSettling(changes, at) && changes.changedAt !== at);
    for (const part of partsOf(client, query.queryKey[1])) {
      const fetched = fetches.get(part);
      const isStale = fetched !== undefined && fetched.startedAt < changes.staleAt;
      const isSoon = canWait && fetched !== undefined && at - fetched.startedAt < fetched.tookMs * SHARE;
      if (part.state.status === "error" || (isStale && !isSoon))
        void client.refetchQueries({ queryKey: part.queryKey, exact: true }, { cancelRefetch: false });
    }
  };

  return cache.subscribe((event) => {
    if (event.type !== "updated") return;
    const { query, action } = event;
    if (action.type === "fetch")
      fetches.set(query, { startedAt: now(), tookMs: fetches.get(query)?.tookMs ?? 0 });
    // The page adds to what it fetched, which says nothing about the server.
    if (action.type !== "success" || action.manual) return;
    const fetched = fetches.get(query);
    if (fetched) fetched.tookMs = now() - fetched.startedAt;
    if (query.queryKey[0] === "thread") look(query);
  });
}

function changesOf(before: Changes | undefined, row: Thread, outages: number, at: number): Changes {
  const version = `${row.status} ${row.updated_at}`;
  if (!before) {
    // What is on screen may have been read before the last change, and the row after it.
    const age = Date.now() - Date.parse(row.updated_at);
    return {
      version,
      changedAt: Math.abs(age) < RECENT_MS ? at : Number.NEGATIVE_INFINITY,
      staleAt: 0,
      outages,
    };
  }
  // After an outage the page does not know what it missed.
  const hasChanged = before.version !== version || before.outages !== outages;
  const changes = { ...before, version, outages, changedAt: hasChanged ? at : before.changedAt };
  return row.status === "busy" || isSettling(changes, at) ? { ...changes, staleAt: at } : changes;
}

function isSettling({ changedAt }: Changes, at: number): boolean {
  return at - changedAt < SETTLE_MS;
}

/** Returns the parts of a thread that are on screen and may change: the state of a checkpoint does not. */
function partsOf(client: QueryClient, thread: unknown): Query[] {
  return client.getQueryCache().findAll({
    type: "active",
    fetchStatus: "idle",
    predicate: ({ queryKey: [part, id, at] }) =>
      id === thread && PARTS.includes(String(part)) && (at === undefined || at === "newest"),
  });
}
