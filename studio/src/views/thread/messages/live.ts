/** What happens on a thread right now. Every component that shows it shares one connection for each thread. */

import { useSyncExternalStore } from "react";

import { refreshThread } from "../../../api/actions.ts";
import { ApiProblem, send } from "../../../api/client.ts";
import { EventParser, type ServerEvent } from "../../../api/events.ts";
import { foldAll, type LiveThread, NOTHING_LIVE } from "../../../pure/event_fold.ts";

export interface LiveView extends LiveThread {
  isConnected: boolean;
  /** When the last run stopped, by the clock of the page; 0 if none did. */
  stoppedAt: number;
}

const NOTHING: LiveView = { ...NOTHING_LIVE, isConnected: false, stoppedAt: 0 };

/** How long a connection stays without a reader: another view of the same thread may come. */
const LINGER_MS = 5000;
/** Frames do not come while the page is hidden, and events must not pile up. */
const FLUSH_MS = 250;
const BATCH_MAX = 2000;

class LiveStore {
  #view = NOTHING;
  #batch: ServerEvent[] = [];
  #frame: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();
  #lingering: ReturnType<typeof setTimeout> | undefined;
  #aborter: AbortController | undefined;
  readonly #thread: string;

  constructor(thread: string) {
    this.#thread = thread;
  }

  readonly snapshot = (): LiveView => this.#view;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    clearTimeout(this.#lingering);
    if (!this.#aborter) this.#connect();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#lingering = setTimeout(() => this.#close(), LINGER_MS);
    };
  };

  #connect(): void {
    const aborter = new AbortController();
    this.#aborter = aborter;
    void followEvents(this.#thread, {
      signal: aborter.signal,
      since: () => this.#newest(),
      onEvent: (event) => this.#take(event),
      onConnection: (isConnected) => this.#set({ ...this.#view, isConnected }),
      // A thread that is gone or not allowed stays so: the view says it where it reads the state.
    }).catch(() => this.#set({ ...this.#view, isConnected: false }));
  }

  #close(): void {
    this.#aborter?.abort();
    this.#cancelFlush();
    stores.delete(this.#thread);
  }

  #newest(): string | undefined {
    return this.#batch.findLast(({ id }) => id !== undefined)?.id ?? this.#view.last;
  }

  #take(event: ServerEvent): void {
    this.#batch.push(event);
    if (this.#batch.length >= BATCH_MAX) this.#flush();
    else {
      this.#frame ??= requestAnimationFrame(() => this.#flush());
      this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS);
    }
  }

  #flush(): void {
    this.#cancelFlush();
    const batch = this.#batch;
    this.#batch = [];
    const folded = foldAll(this.#view, batch) as LiveView;
    if (folded === this.#view) return;
    const hasStopped = folded.run !== this.#view.run && folded.run !== "running" && folded.run !== "unknown";
    this.#set(hasStopped ? { ...folded, stoppedAt: Date.now() } : folded);
    // What the run left is to be seen at once, not with the next poll.
    if (folded.run !== "unknown" && batch.some(({ name }) => name === "lifecycle"))
      void refreshThread(this.#thread);
  }

  #cancelFlush(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = undefined;
    this.#timer = undefined;
  }

  #set(view: LiveView): void {
    this.#view = view;
    for (const listener of this.#listeners) listener();
  }
}

const stores = new Map<string, LiveStore>();

function storeOf(thread: string): LiveStore {
  const known = stores.get(thread);
  if (known) return known;
  const store = new LiveStore(thread);
  stores.set(thread, store);
  return store;
}

const nothing = { subscribe: () => () => {}, snapshot: () => NOTHING };

/** Returns what happens on a thread; nothing for `undefined`, and then there is no connection. */
export function useLiveThread(thread: string | undefined): LiveView {
  const { subscribe, snapshot } = thread === undefined ? nothing : storeOf(thread);
  return useSyncExternalStore(subscribe, snapshot);
}

interface FollowOptions {
  signal: AbortSignal;
  /** The id of the newest event that was seen. */
  since: () => string | undefined;
  onEvent: (event: ServerEvent) => void;
  onConnection: (isOpen: boolean) => void;
}

/**
 * Follows the events of all runs of a thread, from the beginning of the newest one. `GET …/stream` shows a run only in the modes that
 * its caller asked for, so tokens of most runs are missing there; this stream has them, whoever started the run.
 */
async function followEvents(thread: string, options: FollowOptions): Promise<void> {
  const { signal, since, onEvent, onConnection } = options;
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const last = since();
      const json = {
        channels: ["lifecycle", "messages", "tools"],
        ...(last !== undefined && { since: Number(last) }),
      };
      const path = `/threads/${encodeURIComponent(thread)}/stream/events`;
      const response = await send(path, { method: "POST", json, signal });
      onConnection(true);
      failures = 0;
      await readEvents(response, onEvent);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiProblem && !error.isTransient) throw error;
    }
    if (signal.aborted) return;
    onConnection(false);
    await new Promise((resolve) => setTimeout(resolve, Math.min(250 * 2 ** failures, 5000)));
  }
}

async function readEvents(response: Response, onEvent: (event: ServerEvent) => void): Promise<void> {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return;
    for (const event of parser.push(decoder.decode(chunk.value, { stream: true }))) onEvent(event);
  }
}
