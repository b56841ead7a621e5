import { expect, test } from "vitest";

import { ApiProblem } from "./client.ts";
import { follow, type ServerEvent } from "./events.ts";

/** A connection that sends chunks, and then breaks, ends, or stays silent. */
function connection(chunks: string[], end: "break" | "close" | "silence", signal: AbortSignal): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      if (end === "close") controller.close();
      signal.addEventListener("abort", () => controller.error(signal.reason));
    },
    pull(controller) {
      if (end === "break") controller.error(new TypeError("network error"));
    },
  });
  return new Response(body);
}

const event = (id: number) => `event: tick\nid: ${id}\ndata: ${id}\n\n`;

/** Follows connections one after the other, until the last event has come. */
async function followAll(connections: ((signal: AbortSignal) => Response)[], last: number) {
  const aborter = new AbortController();
  const events: ServerEvent[] = [];
  const states: boolean[] = [];
  let opened = 0;
  await follow({
    signal: aborter.signal,
    connect: async (signal) => {
      const next = connections[opened++];
      if (!next) throw new ApiProblem(0, "away");
      return next(signal);
    },
    onEvent: (each) => {
      events.push(each);
      if (each.data === last) aborter.abort();
    },
    onConnection: (isOpen) => states.push(isOpen),
    silenceMs: 50,
  });
  return { ids: events.map(({ id }) => id), states, opened };
}

test("a broken connection, one that ends and a silent one are followed by another", async () => {
  const followed = await followAll(
    [
      (signal) => connection([event(1), "event: tick\nid: 2\nda"], "break", signal),
      (signal) => connection([event(2)], "close", signal),
      (signal) => connection([event(3)], "silence", signal),
      (signal) => connection([event(4)], "silence", signal),
    ],
    4,
  );
  expect(followed).toEqual({
    ids: ["1", "2", "3", "4"],
    states: [true, false, true, false, true, false, true],
    opened: 4,
  });
});

test("a refusal ends it", async () => {
  const refused = follow({
    signal: new AbortController().signal,
    connect: () => Promise.reject(new ApiProblem(404, "no such thread")),
    onEvent: () => {},
    onConnection: () => {},
  });
  await expect(refused).rejects.toThrow("no such thread");
});
