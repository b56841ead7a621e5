// What a drive asks our server itself, besides what the app asks it.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Longest time that a run may take, with the slow chat in mind. */
const RUN_MAX_MS = 30_000;

export class ServerClient {
  constructor(url) {
    this.url = url;
  }

  async call(method, path, body) {
    const response = await fetch(this.url + path, {
      method,
      headers: { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** Creates a thread, runs the graph on it until it stops, and returns the thread's id. */
  async run(graph, text) {
    const { thread_id: thread } = await this.call("POST", "/threads", {});
    const input = { messages: [{ role: "user", content: text }] };
    await this.call("POST", `/threads/${thread}/runs/wait`, { assistant_id: graph, input });
    return thread;
  }

  thread(thread) {
    return this.call("GET", `/threads/${thread}`);
  }

  state(thread) {
    return this.call("GET", `/threads/${thread}/state`);
  }

  runs(thread) {
    return this.call("GET", `/threads/${thread}/runs?limit=100`);
  }

  /** Waits until no run of the thread is active, and returns the thread's state. */
  async settled(thread) {
    const deadline = Date.now() + RUN_MAX_MS;
    while (Date.now() < deadline) {
      const { status } = await this.thread(thread);
      if (status !== "busy") return this.state(thread);
      await sleep(50);
    }
    throw new Error(`thread ${thread} is still busy`);
  }
}

/** Returns the messages of a state in short: `["human: hello", "ai: Hi!", "ai calls refund", "tool: paid"]`. */
export function conversation(state) {
  return state.values.messages.map((message) => {
    const calls = (message.tool_calls ?? []).map((call) => call.name);
    const text = textOf(message);
    return calls.length > 0 ? `${message.type} calls ${calls.join(", ")}` : `${message.type}: ${text}`;
  });
}

export function textOf(message) {
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => block.text ?? "").join("");
}

/** Returns the names of the tools that were called, each with the text of its result. */
export function toolResults(state) {
  const calls = state.values.messages.flatMap((message) => message.tool_calls ?? []);
  const result = ({ id }) => state.values.messages.find((message) => message.tool_call_id === id);
  return calls.map((call) => [call.name, textOf(result(call))]);
}

/** Asserts that a thread has ended: nothing is left to run or to answer. */
export function assertEnded(state) {
  assert.deepEqual(state.next, []);
  assert.deepEqual(state.interrupts, []);
}

/** Returns the names of the actions that a state's open interrupts ask about. */
export function askedActions(state) {
  return state.interrupts.map((interrupt) => interrupt.value.action_request.action);
}
