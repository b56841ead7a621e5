// Deep Agents UI: a person talks to an agent, and decides about its tool calls.

import assert from "node:assert/strict";

import { askedActions, assertEnded, conversation, toolResults } from "./server_client.mjs";
import { slowAnswer } from "./slow_chat.mjs";
import { severalTimes } from "./visit.mjs";

async function open({ visit, server }, graph) {
  const config = { deploymentUrl: server.url, assistantId: graph };
  const page = await visit.start({ "deep-agent-config": JSON.stringify(config) });
  await page.goto(`${visit.app}/?assistantId=${graph}&sidebar=1`);
  await page.getByPlaceholder("Write your message...").waitFor();
  return page;
}

async function say(page, text) {
  await page.getByPlaceholder("Write your message...").fill(text);
  await button(page, "Send").click();
}

async function idle(page) {
  await button(page, "Send").waitFor();
}

function button(page, name) {
  return page.getByRole("button", { name, exact: true });
}

async function threadOf(page) {
  await page.waitForURL(/threadId=/);
  return new URL(page.url()).searchParams.get("threadId");
}

function answers(page) {
  return page.locator("div.prose, .markdown-content");
}

export const drives = {
  async "shows an answer word by word"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/You said: hello\. One sheep/).first().waitFor();
    const early = await answers(page).innerText();
    await cx.visit.shot("early");
    await page.getByText(/five sheep/).first().waitFor();
    const later = await answers(page).innerText();
    await idle(page);
    const shown = await answers(page).allInnerTexts();
    await cx.visit.shot("whole");
    assert.deepEqual(shown, [slowAnswer("hello")]);
    assert.ok(shown[0].startsWith(later) && later.startsWith(early) && early.length < later.length);
    assert.ok(later.length < shown[0].length);
    const state = await cx.server.settled(await threadOf(page));
    assertEnded(state);
    assert.deepEqual(conversation(state), ["human: hello", `ai: ${slowAnswer("hello")}`]);
  },

  async "is reloaded in the middle of an answer, and goes on with it"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/two sheep/).first().waitFor();
    const thread = await threadOf(page);
    await page.reload();
    await page.getByText(/four sheep/).first().waitFor();
    await cx.visit.shot("reloaded");
    const early = await answers(page).innerText();
    assert.ok(early.startsWith("You said: hello. One sheep"), `the beginning is missing: ${early}`);
    assert.ok(early.length < slowAnswer("hello").length, "the answer was complete already");
    await page.getByText(/Good night/).first().waitFor();
    await idle(page);
    await cx.visit.shot("whole");
    assert.deepEqual(await answers(page).allInnerTexts(), [slowAnswer("hello")]);
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), ["human: hello", `ai: ${slowAnswer("hello")}`]);
    assert.deepEqual((await cx.server.runs(thread)).map((run) => run.status), ["success"]);
  },

  async "stops an answer"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/two sheep/).first().waitFor();
    await button(page, "Stop").click();
    await idle(page);
    await cx.visit.shot("stopped");
    const thread = await threadOf(page);
    const state = await cx.server.settled(thread);
    assert.deepEqual((await cx.server.runs(thread)).map((run) => run.status), ["interrupted"]);
    assert.deepEqual(conversation(state), ["human: hello"]);
  },

  async "approves"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await cx.visit.shot("question");
    await button(page, "Approve").click();
    await page.getByText("The tools said: paid 19.00 EUR for A-17").first().waitFor();
    await idle(page);
    await cx.visit.shot("approved");
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), [
      "human: a refund, please",
      "ai calls refund",
      "tool: paid 19.00 EUR for A-17",
      "ai: The tools said: paid 19.00 EUR for A-17",
    ]);
  },

  async "edits a number, which stays a number"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await button(page, "Edit").click();
    await page.locator("label:text-is('cents') + textarea").fill("2550");
    await cx.visit.shot("edited");
    await button(page, "Save & Approve").click();
    await page.getByText("The tools said: paid 25.50 EUR for A-17").first().waitFor();
    const sent = cx.visit.bodies("/runs/stream").at(-1);
    assert.equal(sent.command.resume.decisions[0].edited_action.args.cents, "2550", "the app sends a text");
    assertEnded(await cx.server.settled(thread));
  },

  async "rejects with a reason, and without one"(cx) {
    for (const [reason, result] of [
      ["Too much money.", /^tool: Too much money\.$/],
      ["", /^tool: `refund` was not called: a person said no\./],
    ]) {
      const { page, thread } = await asked(cx, "refunds", "a refund, please");
      await button(page, "Reject").click();
      await page.getByPlaceholder("Explain why you're rejecting this action...").fill(reason);
      await button(page, "Confirm Reject").click();
      await page.getByText("The tools said:").first().waitFor();
      const state = await cx.server.settled(thread);
      assertEnded(state);
      assert.match(conversation(state)[2], result);
      await cx.visit.end();
    }
  },

  async "approves after a reload"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await page.reload();
    await button(page, "Approve").click();
    await page.getByText("The tools said: paid 19.00 EUR for A-17").first().waitFor();
    assertEnded(await cx.server.settled(thread));
  },

  async "decides about two calls of one message, each in its own way"(cx) {
    await severalTimes(cx, async () => {
      const { page, thread } = await asked(cx, "refunds", "both, please");
      await cx.visit.shot("both");
      // The app shows one question at a time, in the box of its tool call.
      const shown = page.locator("div", { hasText: /^Tool/ }).locator("p.font-mono");
      const approved = await shown.innerText();
      await button(page, "Approve").click();
      await page.waitForResponse(/\/history$/);
      const left = askedActions(await cx.server.settled(thread));
      assert.ok(!left.includes(approved), `${approved} was approved, and still waits: another call was approved`);
      // The box of the other call is still folded.
      await button(page, left[0]).click();
      await shown.filter({ hasNotText: approved }).waitFor();
      await cx.visit.shot("one-left");
      await button(page, "Reject").click();
      await page.getByPlaceholder("Explain why you're rejecting this action...").fill("Not this one.");
      await button(page, "Confirm Reject").click();
      await page.getByText("The tools said:").first().waitFor();
      const state = await cx.server.settled(thread);
      assertEnded(state);
      const results = Object.fromEntries(toolResults(state));
      assert.equal(results[left[0]], "Not this one.");
      assert.match(results[approved], /^(paid 19\.00 EUR|sent "Your money)/);
    });
  },

  async "lists threads with their status, and opens one"(cx) {
    const thread = await cx.server.run("refunds", "the first of all");
    await cx.server.run("agent", "another one");
    const page = await open(cx, "refunds");
    await page.getByRole("button", { name: /another one/ }).waitFor();
    await cx.visit.shot("list");
    await page.getByRole("button", { name: /the first of all/ }).click();
    await button(page, "Approve").waitFor();
    assert.equal(await threadOf(page), thread);
  },
};

async function asked(cx, graph, text) {
  const page = await open(cx, graph);
  await say(page, text);
  await button(page, "Approve").first().waitFor();
  await idle(page);
  return { page, thread: await threadOf(page) };
}
