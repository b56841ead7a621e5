// `HttpAgent`, the client of AG-UI, against our server. It checks the order of all events itself.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { HttpAgent } from "@ag-ui/client";

function agent(assistant) {
  const url = `${process.env.SERVER_URL}/ag-ui/${assistant}`;
  return new HttpAgent({ url, threadId: randomUUID() });
}

test("a conversation grows", async () => {
  const chat = agent("agent");
  let text = "";
  for (const count of [2, 4]) {
    chat.addMessage({ id: randomUUID(), role: "user", content: "hi" });
    text = "";
    await chat.runAgent({}, {
      onTextMessageContentEvent: ({ event }) => {
        text += event.delta;
      },
    });
    assert.equal(text, "Hello there, dear world.");
    assert.equal(chat.messages.length, count);
  }
});

test("a pause is an outcome, and the answer is in the next run", async () => {
  const asking = agent("both");
  let finished;
  const subscriber = {
    onRunFinishedEvent: ({ event }) => {
      finished = event;
    },
  };
  await asking.runAgent({}, subscriber);
  assert.equal(finished.outcome.type, "interrupt");
  const [interrupt] = finished.outcome.interrupts;
  assert.equal(interrupt.reason, "confirmation");
  const answer = { interruptId: interrupt.id, status: "resolved", payload: { type: "accept" } };
  await asking.runAgent({ resume: [answer] }, subscriber);
  assert.equal(finished.outcome.type, "success");
  assert.ok(asking.state.log.length > 0);
});

test("a failed run is an error", async () => {
  const failing = agent("delay");
  failing.setState({ ms: 0, fail: true });
  let error;
  const run = failing.runAgent({}, {
    onRunErrorEvent: ({ event }) => {
      error = event;
    },
  });
  await run.catch(() => {});
  assert.match(error.message, /kaboom/);
});
