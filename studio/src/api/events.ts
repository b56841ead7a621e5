/** Server-sent events over `fetch`, which survive a broken connection. */

import { ApiProblem } from "./client.ts";
import type { Json } from "./json.ts";

export interface ServerEvent {
  id: string | undefined;
  name: string;
  data: Json;
}

/** Splits a stream of text into events, whatever its chunks are. */
export class EventParser {
  #rest = "";
  #lastId: string | undefined;

  /** Takes a chunk, and returns the events that it completed. */
  push(chunk: string): ServerEvent[] {
    this.#rest += chunk;
    const events: ServerEvent[] = [];
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.#rest);
      if (!end) return events;
      const event = this.#parse(this.#rest.slice(0, end.index));
      this.#rest = this.#rest.slice(end.index + end[0].length);
      if (event) events.push(event);
    }
  }

  #parse(block: string): ServerEvent | undefined {
    let name = "message";
    const data: string[] = [];
    for (const line of block.split(/\r\n|\n|\r/)) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.#lastId = value;
    }
    if (data.length === 0) return undefined;
    return { id: this.#lastId, name, data: JSON.parse(data.join("\n")) as Json };
  }
}

export interface FollowOptions {
  signal: AbortSignal;
  /** Opens a connection that continues where the last one ended. */
  connect: (signal: AbortSignal) => Promise<Response>;
  onEvent: (event: ServerEvent) => void;
  /** Called when the connection is there, and when it is lost. */
  onConnection: (isOpen: boolean) => void;
  /** How long a connection may be silent. The server sends something every 15 seconds. */
  silenceMs?: number;
}

/** Follows a stream until it is aborted, over as many connections as it takes. */
export async function follow(options: FollowOptions): Promise<void> {
  const { signal, onConnection } = options;
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await read(options, () => {
        onConnection(true);
        failures = 0;
      });
    } catch (error) {
      if (error instanceof ApiProblem && !error.isTransient && !signal.aborted) throw error;
    }
    if (signal.aborted) return;
    onConnection(false);
    await online(Math.min(250 * 2 ** failures, 2000), signal);
  }
}

/** Reads one connection to its end. One that is silent for too long is taken for broken: networks may lose it without a word. */
async function read(
  { signal, connect, onEvent, silenceMs = 35_000 }: FollowOptions,
  onOpen: () => void,
): Promise<void> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    const response = await connect(AbortSignal.any([signal, silence.signal]));
    onOpen();
    const parser = new EventParser();
    const decoder = new TextDecoder();
    const reader = response.body?.getReader();
    for (;;) {
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMs);
      for (const event of parser.push(decoder.decode(chunk.value, { stream: true }))) onEvent(event);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for a while; less if the network is back. */
function online(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    globalThis.addEventListener?.("online", done);
  });
}
