/** Server-sent events over `fetch`, which survive a broken connection. */

import { ApiProblem, send } from "./client.ts";
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
  onEvent: (event: ServerEvent) => void;
  /** Called when the connection is there, and when it is lost. */
  onConnection?: (isOpen: boolean) => void;
  query?: Record<string, string>;
  /** How long to wait before another attempt, by the number of failures. */
  delay?: (failures: number) => number;
}

/** Follows a stream until it is aborted, and continues after the last event when the connection broke. */
export async function follow(path: string, options: FollowOptions): Promise<void> {
  const { signal, onEvent, onConnection } = options;
  const delay = options.delay ?? ((failures) => Math.min(250 * 2 ** failures, 5000));
  let last: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last !== undefined) headers["last-event-id"] = last;
      const response = await send(path, { headers, signal, ...(options.query && { query: options.query }) });
      onConnection?.(true);
      failures = 0;
      const parser = new EventParser();
      const decoder = new TextDecoder();
      const reader = response.body?.getReader();
      for (;;) {
        const chunk = await reader?.read();
        if (!chunk || chunk.done) break;
        for (const event of parser.push(decoder.decode(chunk.value, { stream: true }))) {
          last = event.id ?? last;
          onEvent(event);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiProblem && !error.isTransient) throw error;
    }
    onConnection?.(false);
    await sleep(delay(failures++), signal);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
