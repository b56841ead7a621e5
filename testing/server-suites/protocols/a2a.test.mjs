// The client of the official A2A SDK against our server, which it speaks to in version 1.0 of the protocol.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { ClientFactory } from "@a2a-js/sdk/client";

const COMPLETED = 3;
const INPUT_REQUIRED = 6;

function connect(assistant) {
  const path = `/.well-known/agent-card.json?assistant_id=${assistant}`;
  return new ClientFactory().createFromUrl(process.env.SERVER_URL, path);
}

function message(content, fields = {}) {
  const part = { content, metadata: undefined, filename: "", mediaType: "" };
  return {
    tenant: "",
    configuration: undefined,
    metadata: undefined,
    message: {
      messageId: randomUUID(),
      contextId: "",
      taskId: "",
      role: 1,
      parts: [part],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...fields,
    },
  };
}

const text = (value) => ({ $case: "text", value });

test("a message is answered", async () => {
  const client = await connect("agent");
  const task = await client.sendMessage(message(text("hi")));
  assert.equal(task.status.state, COMPLETED);
  assert.equal(task.artifacts[0].parts[0].content.value, "Hello there, dear world.");
  const found = await client.getTask({ tenant: "", id: task.id });
  assert.equal(found.status.state, COMPLETED);
});

test("a task is streamed", async () => {
  const client = await connect("agent");
  const kinds = [];
  let last;
  for await (const event of client.sendMessageStream(message(text("hi")))) {
    kinds.push(event.payload.$case);
    last = event.payload.value;
  }
  assert.equal(kinds[0], "task");
  assert.ok(kinds.includes("artifactUpdate"), kinds.join(" "));
  assert.equal(last.status.state, COMPLETED);
});

test("a question is answered by the next message", async () => {
  const client = await connect("both");
  const task = await client.sendMessage(message(text("go")));
  assert.equal(task.status.state, INPUT_REQUIRED);
  const accept = { $case: "data", value: { type: "accept" } };
  const done = await client.sendMessage(message(accept, { taskId: task.id }));
  assert.equal(done.id, task.id);
  assert.equal(done.status.state, COMPLETED);
});

test("a task that does not exist is not found", async () => {
  const client = await connect("agent");
  await assert.rejects(client.getTask({ tenant: "", id: "nothing" }));
});
