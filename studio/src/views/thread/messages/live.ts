/** What happens on a thread right now. Every component that shows it shares one connection for each thread. */

import { useSyncExternalStore } from "react";

import { refreshThread } from "../../../api/actions.ts";
import { send } from "../../../api/client.ts";
import { follow, type ServerEvent } from "../../../api/events.ts";
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
    void follow({
      signal: aborter.signal,
      connect: (signal) => requestEvents(this.#thread, this.#since(), signal),
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

  /** From where to continue. Some events come again then, and are folded once. */
  #since(): string | undefined {
    this.#flush();
    return this.#view.since;
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

/**
 * Asks for the events of all runs of a thread, from the beginning of the newest one. `GET …/stream` shows a run only in the modes that
 * its caller asked for, so tokens of most runs are missing there; this stream has them, whoever started the run.
 */
function requestEvents(thread: string, since: string | undefined, signal: AbortSignal): Promise<Response> {
  const json = {
    channels: ["lifecycle", "messages", "tools"],
    ...(since !== undefined && { since: Number(since) }),
  };
  return send(`/threads/${encodeURIComponent(thread)}/stream/events`, { method: "POST", json, signal });
}
