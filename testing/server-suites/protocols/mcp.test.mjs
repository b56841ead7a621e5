// The client of the official MCP SDK against our server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const url = new URL("/mcp", process.env.SERVER_URL);

async function connect(capabilities, answer) {
  const client = new Client({ name: "server-suites", version: "1" }, { capabilities });
  if (answer) client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

async function runsInProgress() {
  const queue = await fetch(new URL("/superstep/queue", process.env.SERVER_URL));
  const { pending, running } = await queue.json();
  return pending + running;
}

test("assistants are tools", async () => {
  const client = await connect({});
  const { tools } = await client.listTools();
  const agent = tools.find((tool) => tool.name === "agent");
  assert.equal(agent.inputSchema.type, "object");
  const result = await client.callTool({ name: "agent", arguments: { messages: "hi" } });
  assert.equal(result.isError, false);
  assert.match(result.content[0].text, /Hello there, dear world\./);
  await client.close();
});

test("progress is reported", async () => {
  const client = await connect({});
  const seen = [];
  const call = { name: "delay", arguments: { ms: 10 } };
  await client.callTool(call, undefined, { onprogress: (progress) => seen.push(progress) });
  assert.deepEqual(seen.map((progress) => progress.progress), [1, 2]);
  await client.close();
});

test("an approval is asked with a form", async () => {
  const asked = [];
  const client = await connect({ elicitation: {} }, async (request) => {
    asked.push(request.params);
    return { action: "accept", content: { decision: "accept" } };
  });
  const result = await client.callTool({ name: "both", arguments: {} });
  assert.equal(asked.length, 1);
  assert.match(asked[0].message, /Send\?/);
  assert.match(result.content[0].text, /answered/);
  await client.close();
});

test("without a form, the result says that the run waits", async () => {
  const client = await connect({});
  const result = await client.callTool({ name: "both", arguments: {} });
  assert.equal(result.isError, false);
  assert.equal(result.structuredContent.status, "waiting");
  await client.close();
});

test("a call is cancelled", async () => {
  const client = await connect({});
  const abort = new AbortController();
  setTimeout(() => abort.abort("enough"), 300);
  const call = { name: "delay", arguments: { ms: 60_000 } };
  await assert.rejects(client.callTool(call, undefined, { signal: abort.signal }));
  // A client that closes at once would take its notification back.
  for (let waited = 0; (await runsInProgress()) > 0; waited += 100) {
    assert.ok(waited < 5_000, "the run was not cancelled");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await client.close();
});

test("a failed run is the result of the call", async () => {
  const client = await connect({});
  const result = await client.callTool({ name: "delay", arguments: { ms: 0, fail: true } });
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /kaboom/);
  await assert.rejects(client.callTool({ name: "nowhere", arguments: {} }));
  await client.close();
});
