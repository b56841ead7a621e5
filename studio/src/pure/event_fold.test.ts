import fc from "fast-check";
import { expect, test } from "vitest";

import { EventParser, type ServerEvent } from "../api/events.ts";
import type { Json, JsonObject } from "../api/json.ts";
import {
  foldAll,
  foldEvent,
  isNewer,
  LIMITS,
  type LiveThread,
  liveText,
  NOTHING_LIVE,
} from "./event_fold.ts";
import { conversationOf, messagesOf } from "./messages.ts";

/** One message of a made-up run: what the model wrote before it failed, if it did, and what it wrote in the end. */
interface Written {
  failed: string[];
  text: string;
  args: Record<string, string> | undefined;
}

const written: fc.Arbitrary<Written> = fc.record({
  failed: fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), { maxLength: 2 }),
  text: fc.string({ unit: "grapheme", maxLength: 60 }),
  args: fc.option(fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ maxLength: 9 })), {
    nil: undefined,
  }),
});

/** The events of a run, as the server numbers them. `sizes` says how texts are split into tokens. */
function eventsOf(messages: Written[], sizes: number[]): ServerEvent[] {
  const events: ServerEvent[] = [];
  const push = (name: string, data: JsonObject) => {
    const id = String(4_194_304 + events.length);
    const params = { namespace: [], timestamp: 1, node: "model", data };
    events.push({ id, name, data: { type: "event", seq: Number(id), method: name, params } });
  };
  const tokens = (index: number, at: number, text: string, delta: (part: string) => Json, id: string) => {
    for (let from = 0, turn = index; from < text.length; turn++) {
      const size = sizes[turn % sizes.length] ?? 1;
      push("messages", {
        event: "content-block-delta",
        message_id: id,
        index: at,
        delta: delta(text.slice(from, from + size)),
      });
      from += size;
    }
  };
  push("lifecycle", { event: "running", graph_name: "g" });
  messages.forEach((message, index) => {
    const id = `m${index}`;
    for (const failed of [...message.failed, undefined]) {
      const text = failed ?? message.text;
      push("messages", { event: "message-start", role: "ai", id });
      push("messages", {
        event: "content-block-start",
        message_id: id,
        index: 0,
        content: { type: "text", text: "" },
      });
      tokens(index, 0, text, (part) => ({ type: "text-delta", text: part }), id);
      push("messages", {
        event: "content-block-finish",
        message_id: id,
        index: 0,
        content: { type: "text", text },
      });
      if (failed === undefined && message.args) {
        const call = { type: "tool_call_chunk", id: `c${index}`, name: "look", args: "", index: 1 };
        push("messages", { event: "content-block-start", message_id: id, index: 1, content: call });
        tokens(
          index,
          1,
          JSON.stringify(message.args),
          (part) => ({ type: "tool-call-delta", args: part }),
          id,
        );
        push("messages", {
          event: "content-block-finish",
          message_id: id,
          index: 1,
          content: { ...call, type: "tool_call", args: message.args },
        });
        push("tools", {
          event: "tool-started",
          tool_call_id: `c${index}`,
          tool_name: "look",
          input: message.args,
        });
        push("tools", {
          event: "tool-finished",
          tool_call_id: `c${index}`,
          output: { type: "tool", content: "seen" },
        });
      }
      push("messages", {
        event: "message-finish",
        message_id: id,
        ...(failed === undefined && { usage: { input_tokens: 3, output_tokens: 4 } }),
      });
    }
  });
  push("lifecycle", { event: "completed", graph_name: "g" });
  return events;
}

function stateOf(messages: Written[]): Json {
  return messages.map(({ text, args }, index) => ({
    type: "ai",
    id: `m${index}`,
    content: text,
    tool_calls: args ? [{ id: `c${index}`, name: "look", args, type: "tool_call" }] : [],
  }));
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 });

/** What a reader sees, without how it came there. */
const shown = ({ messages, run, tools }: LiveThread) => ({ messages, run, tools: [...tools.values()] });

test("ids are compared as numbers, with one part or two", () => {
  expect(isNewer("5-1000000", "5-99")).toBe(true);
  expect(isNewer("12-0", "5-1000000")).toBe(true);
  expect(isNewer("5-99", "5-99")).toBe(false);
  expect(isNewer("20971555", "20971520")).toBe(true);
  expect(isNewer("9", "10")).toBe(false);
});

test("any cut and resumption, with repeats, gives the same", () => {
  fc.assert(
    fc.property(
      fc.array(written, { maxLength: 5 }),
      sizes,
      fc.array(fc.tuple(fc.nat(), fc.nat({ max: 30 })), { maxLength: 6 }),
      (messages, split, cuts) => {
        const events = eventsOf(messages, split);
        const once = foldAll(NOTHING_LIVE, events);
        let live = NOTHING_LIVE;
        let next = 0;
        for (const [length, back] of cuts) {
          const end = Math.min(events.length, next + (length % (events.length + 1)));
          live = foldAll(live, events.slice(next, end));
          // The server repeats some of what the page has already.
          next = Math.max(0, end - back);
        }
        live = foldAll(live, events.slice(next));
        expect(live).toEqual(once);
        // Everything once more changes nothing, not even the identity.
        expect(foldAll(live, events)).toBe(live);
      },
    ),
  );
});

test("any split into tokens gives the same", () => {
  fc.assert(
    fc.property(fc.array(written, { maxLength: 4 }), sizes, sizes, (messages, first, second) => {
      const one = foldAll(NOTHING_LIVE, eventsOf(messages, first));
      const other = foldAll(NOTHING_LIVE, eventsOf(messages, second));
      expect(shown(one)).toEqual(shown(other));
    }),
  );
});

test("any chunks of bytes give the same", () => {
  fc.assert(
    fc.property(fc.array(written, { maxLength: 3 }), sizes, sizes, (messages, split, chunks) => {
      const events = eventsOf(messages, split);
      const wire = events
        .map(({ id, name, data }) => `event: ${name}\r\ndata: ${JSON.stringify(data)}\r\nid: ${id}\r\n\r\n`)
        .join(": heartbeat\r\n\r\n");
      const parser = new EventParser();
      const parsed: ServerEvent[] = [];
      for (let from = 0, turn = 0; from < wire.length; turn++) {
        const size = (chunks[turn % chunks.length] ?? 1) * 7;
        parsed.push(...parser.push(wire.slice(from, from + size)));
        from += size;
      }
      expect(foldAll(NOTHING_LIVE, parsed)).toEqual(foldAll(NOTHING_LIVE, events));
    }),
  );
});

test("in the end, the conversation is what the state has, plus what was replaced", () => {
  fc.assert(
    fc.property(fc.array(written, { maxLength: 5 }), sizes, (messages, split) => {
      const live = foldAll(NOTHING_LIVE, eventsOf(messages, split));
      const stored = messagesOf(stateOf(messages)) ?? [];
      // The live text of each message is the stored one.
      for (const message of live.messages.filter(({ status }) => status !== "replaced")) {
        const same = stored.find(({ id }) => id === message.id);
        expect(liveText(message)).toBe(same?.text);
        const calls = message.blocks.filter(({ kind }) => kind === "call");
        expect(calls.map(({ text }) => JSON.parse(text) as Json)).toEqual(
          same?.calls.map(({ args }) => args),
        );
      }
      const entries = conversationOf(stored, live, true);
      const kept = entries.filter((entry) => entry.kind === "stored");
      expect(kept.map((entry) => entry.kind === "stored" && entry.message)).toEqual(stored);
      const replaced = entries.filter((entry) => entry.kind === "live");
      expect(replaced).toHaveLength(messages.flatMap(({ failed }) => failed).length);
    }),
  );
});

test("a message that is written again keeps its old version, marked", () => {
  const live = foldAll(
    NOTHING_LIVE,
    eventsOf([{ failed: ["He", "Hel"], text: "Hello", args: undefined }], [1]),
  );
  expect(live.messages.map((message) => [message.status, liveText(message)])).toEqual([
    ["replaced", "He"],
    ["replaced", "Hel"],
    ["written", "Hello"],
  ]);
  expect(new Set(live.messages.map(({ key }) => key)).size).toBe(3);
  expect(live.messages.at(-1)?.usage).toEqual({ input: 3, output: 4 });
});

test("tokens of a server that was killed do not mix with those of the next one, which have the same ids", () => {
  const later = (event: ServerEvent): ServerEvent => {
    const data = event.data as { params: JsonObject };
    return { ...event, data: { ...data, params: { ...data.params, timestamp: 2 } } };
  };
  const before = eventsOf([{ failed: [], text: "Hello", args: undefined }], [1]).slice(0, 6);
  const after = eventsOf([{ failed: [], text: "Good morning", args: undefined }], [1])
    .slice(1)
    .map(later);
  const live = foldAll(foldAll(NOTHING_LIVE, before), after);
  expect(live.messages.map((message) => [message.status, liveText(message)])).toEqual([
    ["replaced", "Hel"],
    ["written", "Good morning"],
  ]);
  // The next connection continues after an event that is in the log.
  expect(foldAll(NOTHING_LIVE, before).since).toBe(before[0]?.id);
  expect(foldAll(live, after)).toEqual(live);
});

test("a page that joins in the middle of a message has all of it in the end", () => {
  const events = eventsOf([{ failed: [], text: "Hello", args: { at: "1" } }], [1]);
  const live = foldAll(NOTHING_LIVE, events.slice(5));
  expect(live.messages.map((message) => liveText(message))).toEqual(["Hello"]);
});

test("a run that stops leaves no message that seems to be written", () => {
  const events = eventsOf([{ failed: [], text: "Hello", args: undefined }], [1]);
  const stop = (event: string, id: string): ServerEvent => ({
    id,
    name: "lifecycle",
    data: { params: { namespace: [], data: { event, error: "no" } } },
  });
  const cut = foldEvent(foldAll(NOTHING_LIVE, events.slice(0, 5)), stop("failed", "9999999"));
  expect(cut).toMatchObject({ run: "failed", error: "no", messages: [{ status: "stopped" }] });
  const again = foldEvent(cut, stop("running", "99999999"));
  expect(again).toMatchObject({ run: "running", error: undefined, messages: [] });
  const inside: ServerEvent = {
    id: "99999999999",
    name: "lifecycle",
    data: { params: { namespace: ["sub:1"], data: { event: "completed" } } },
  };
  expect(foldEvent(again, inside).run).toBe("running");
});

test("memory is bounded, whatever comes", () => {
  let live = NOTHING_LIVE;
  let id = 0;
  const send = (name: string, data: JsonObject) => {
    live = foldEvent(live, { id: String(++id), name, data: { params: { namespace: [], data } } });
  };
  for (let message = 0; message < 500; message++) {
    send("messages", { event: "message-start", id: `m${message}` });
    const delta = { type: "text-delta", text: "x".repeat(50_000) };
    for (let part = 0; part < 6; part++)
      send("messages", { event: "content-block-delta", message_id: `m${message}`, index: 0, delta });
    send("tools", { event: "tool-started", tool_call_id: `c${message}`, tool_name: "t" });
  }
  expect(live.tools.size).toBe(LIMITS.tools);
  const length = live.messages.reduce((sum, message) => sum + liveText(message).length, 0);
  expect(length).toBeLessThanOrEqual(LIMITS.allText);
  expect(live.messages.at(-1)?.id).toBe("m499");
});

test("events of any form break nothing", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          id: fc.option(fc.string(), { nil: undefined }),
          name: fc.constantFrom("lifecycle", "messages", "tools", "values"),
          data: fc.oneof(
            fc.jsonValue() as fc.Arbitrary<Json>,
            fc.record({
              params: fc.record({
                namespace: fc.jsonValue() as fc.Arbitrary<Json>,
                data: fc.record({
                  event: fc.constantFrom(
                    "message-start",
                    "content-block-delta",
                    "content-block-finish",
                    "message-finish",
                    "running",
                  ),
                  id: fc.jsonValue() as fc.Arbitrary<Json>,
                  message_id: fc.jsonValue() as fc.Arbitrary<Json>,
                  index: fc.jsonValue() as fc.Arbitrary<Json>,
                  delta: fc.jsonValue() as fc.Arbitrary<Json>,
                  content: fc.jsonValue() as fc.Arbitrary<Json>,
                }),
              }),
            }),
          ),
        }),
      ),
      (events) => {
        expect(() => foldAll(NOTHING_LIVE, events as ServerEvent[])).not.toThrow();
      },
    ),
  );
});
