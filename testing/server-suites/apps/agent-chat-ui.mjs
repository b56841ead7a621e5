// Agent Chat UI: a person talks to a graph, and decides about its tool calls.

import assert from "node:assert/strict";

import { askedActions, assertEnded, conversation, toolResults } from "./server_client.mjs";
import { fieldUnder, severalTimes } from "./visit.mjs";
import { slowAnswer } from "./slow_chat.mjs";

async function open({ visit, server }, graph) {
  const page = await visit.start();
  await page.goto(`${visit.app}/?assistantId=${graph}&apiUrl=${encodeURIComponent(server.url)}`);
  await page.getByPlaceholder("Type your message...").waitFor();
  return page;
}

async function say(page, text) {
  await page.getByPlaceholder("Type your message...").fill(text);
  await button(page, "Send").click();
}

/** Waits until the app has nothing to load any more. */
async function idle(page) {
  await button(page, "Send").waitFor();
}

function button(page, name) {
  return page.getByRole("button", { name, exact: true });
}

/** Returns the id of the thread that the page shows, which the app writes into the address. */
async function threadOf(page) {
  await page.waitForURL(/threadId=/);
  return new URL(page.url()).searchParams.get("threadId");
}

/** Returns the answers that the page shows, without the questions. */
function answers(page) {
  return page.locator(".markdown-content");
}

function message(page, text) {
  return page.locator("p.bg-muted", { hasText: text });
}

/** Clicks a button that appears when the pointer is over a message. */
async function clickAt(page, group, name) {
  await group.hover();
  await group.getByRole("button", { name, exact: true }).click();
}

/** Returns a message with the buttons around it. */
function groupOf(page, text) {
  return page.locator("div.group", { hasText: text }).last();
}

export const drives = {
  async "shows an answer word by word"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/You said: hello\. One sheep/).waitFor();
    const early = await answers(page).innerText();
    await cx.visit.shot("early");
    await page.getByText(/five sheep/).waitFor();
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

  async "is reloaded in the middle of an answer"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/two sheep/).waitFor();
    const thread = await threadOf(page);
    await page.reload();
    // The app shows the stored conversation, and does not join the run: the answer comes with the next visit.
    await message(page, "hello").waitFor();
    await cx.visit.shot("reloaded");
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), ["human: hello", `ai: ${slowAnswer("hello")}`]);
    const runs = await cx.server.runs(thread);
    assert.deepEqual(runs.map((run) => run.status), ["success"]);
    await page.reload();
    await page.getByText(/Good night/).waitFor();
    assert.deepEqual(await answers(page).allInnerTexts(), [slowAnswer("hello")]);
  },

  async "leaves an answer that it cancels to the server, and asks again"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/two sheep/).waitFor();
    // The app only stops to listen: it asks the server to continue runs that lose their client.
    await button(page, "Cancel").click();
    await idle(page);
    assert.equal(cx.visit.sent.filter(({ path }) => path.includes("/cancel")).length, 0);
    await say(page, "once more");
    await page.getByText(/You said: once more\. .*Good night/).waitFor();
    await idle(page);
    await cx.visit.shot("asked-again");
    const thread = await threadOf(page);
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), [
      "human: hello",
      `ai: ${slowAnswer("hello")}`,
      "human: once more",
      `ai: ${slowAnswer("once more")}`,
    ]);
    assert.deepEqual((await cx.server.runs(thread)).map((run) => run.status), ["success", "success"]);
  },

  async "approves"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await cx.visit.shot("question");
    await button(page, "Approve").click();
    await page.getByText("The tools said: paid 19.00 EUR for A-17").waitFor();
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
    assert.equal(await button(page, "Approve").count(), 0);
  },

  async "edits a number, which stays a number"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await fieldUnder(page, "Cents").fill("2550");
    await button(page, "Submit").click();
    await page.getByText("The tools said: paid 25.50 EUR for A-17").waitFor();
    const sent = cx.visit.bodies("/runs/stream").at(-1);
    assert.equal(sent.command.resume.decisions[0].edited_action.args.cents, "2550", "the app sends a text");
    assertEnded(await cx.server.settled(thread));
  },

  async "rejects with a reason"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await page.getByPlaceholder("Share feedback with the agent...").fill("Too much money.");
    await button(page, "Submit rejection").click();
    await page.getByText("The tools said: Too much money.").waitFor();
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.equal(conversation(state)[2], "tool: Too much money.");
  },

  async "resolves"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await button(page, "Mark as Resolved").click();
    await button(page, "Approve").waitFor({ state: "detached" });
    await cx.visit.shot("resolved");
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.equal(conversation(state).at(-1), "ai calls refund");
  },

  async "approves after a reload"(cx) {
    const { page, thread } = await asked(cx, "refunds", "a refund, please");
    await page.reload();
    await button(page, "Approve").click();
    await page.getByText("The tools said: paid 19.00 EUR for A-17").waitFor();
    assertEnded(await cx.server.settled(thread));
  },

  async "approves a call of an agent in a subgraph"(cx) {
    const { page, thread } = await asked(cx, "nested_refunds", "a refund, please");
    await cx.visit.shot("question");
    await button(page, "Approve").click();
    await page.getByText("The tools said: paid 19.00 EUR for A-17").waitFor();
    await idle(page);
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.equal(conversation(state).length, 4);
  },

  async "decides about two calls of one message, each in its own way"(cx) {
    await severalTimes(cx, async () => {
      const { page, thread } = await asked(cx, "refunds", "both, please");
      const [approved, rejected] = await decideBoth(cx, page);
      await page.getByText("The tools said:").waitFor();
      const state = await cx.server.settled(thread);
      assertEnded(state);
      const results = Object.fromEntries(toolResults(state));
      assert.equal(results[rejected], "Not this one.");
      assert.match(results[approved], /^(paid 19\.00 EUR|sent "Your money)/);
    });
  },

  async "decides about the questions of two nodes, each in its own way"(cx) {
    await severalTimes(cx, async () => {
      const { page, thread } = await asked(cx, "two_nodes", "go");
      const [approved] = await decideBoth(cx, page);
      const report = approved === "pay" ? "Mail: response. Payment: accept." : "Mail: accept. Payment: response.";
      await page.getByText(report).waitFor();
      assertEnded(await cx.server.settled(thread));
    });
  },

  async "shows two open questions of one message one at a time"(cx) {
    await severalTimes(cx, async () => {
      const { page, thread } = await asked(cx, "refunds", "both, please");
      const shown = await title(page).innerText();
      const other = shown === "refund" ? "send_mail" : "refund";
      assert.deepEqual(askedActions(await cx.server.state(thread)), [shown]);
      await page.getByPlaceholder("Share feedback with the agent...").fill("Not this one.");
      await button(page, "Submit rejection").click();
      await title(page, other).waitFor();
      await cx.visit.shot("second");
      await idle(page);
      assert.deepEqual(askedActions(await cx.server.settled(thread)), [other], "the answer went to another question");
    });
  },

  async "approves, edits and rejects in the form of LangChain's middleware"(cx) {
    for (const [decide, result] of [
      [(page) => button(page, "Approve").click(), /^tool: sent to bob: hi x2$/],
      [
        async (page) => {
          await fieldUnder(page, "Copies").fill("5");
          await button(page, "Submit").click();
        },
        /sent to bob: hi x5$/,
      ],
      [
        async (page) => {
          await page.getByPlaceholder("Share feedback with the agent...").fill("Not now.");
          await button(page, "Submit rejection").click();
        },
        /with reason: Not now\.$/,
      ],
    ]) {
      const { page, thread } = await asked(cx, "hitl", "go");
      await decide(page);
      await page.getByText("all done").waitFor();
      const state = await cx.server.settled(thread);
      assertEnded(state);
      assert.match(conversation(state)[2], result);
      await cx.visit.end();
    }
  },

  async "edits the first message"(cx) {
    const page = await open(cx, "agent");
    await say(page, "hello");
    await page.getByText("Hello there, dear world.").waitFor();
    await idle(page);
    const thread = await threadOf(page);
    await edit(page, /^hello/, "good morning");
    await message(page, "good morning").waitFor();
    await idle(page);
    await groupOf(page, /^good morning/).hover();
    await page.getByText("2 / 2").first().waitFor();
    await cx.visit.shot("edited");
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), ["human: good morning", "ai: Hello there, dear world."]);
    assert.equal(await message(page, "hello").count(), 0);
  },

  async "edits a later message, and goes back to the first version"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "one");
    await page.getByText(/You said: one\. .*Good night/).waitFor();
    await idle(page);
    await say(page, "two");
    await page.getByText(/You said: two\. .*Good night/).waitFor();
    await idle(page);
    const thread = await threadOf(page);
    await edit(page, /^two/, "three");
    await page.getByText(/You said: three\. .*Good night/).waitFor();
    await idle(page);
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), [
      "human: one",
      `ai: ${slowAnswer("one")}`,
      "human: three",
      `ai: ${slowAnswer("three")}`,
    ]);
    const changed = groupOf(page, /^three/);
    await changed.hover();
    await changed.getByText("2 / 2").waitFor();
    await cx.visit.shot("edited");
    await changed.getByRole("button").first().click();
    await page.getByText(/You said: two\./).waitFor();
    await cx.visit.shot("first-version");
    assert.equal(await message(page, "three").count(), 0);
  },

  async "makes an answer again"(cx) {
    const page = await open(cx, "slow_chat");
    await say(page, "hello");
    await page.getByText(/Good night/).waitFor();
    await idle(page);
    const thread = await threadOf(page);
    await clickAt(page, groupOf(page, "Good night"), "Refresh");
    await button(page, "Cancel").waitFor();
    await idle(page);
    await groupOf(page, "Good night").hover();
    await page.getByText("2 / 2").first().waitFor();
    await cx.visit.shot("again");
    const state = await cx.server.settled(thread);
    assertEnded(state);
    assert.deepEqual(conversation(state), ["human: hello", `ai: ${slowAnswer("hello")}`]);
    assert.equal((await cx.server.runs(thread)).length, 2);
  },

  async "lists threads by their first message, and opens one"(cx) {
    const thread = await cx.server.run("agent", "the first of all");
    await cx.server.run("agent", "another one");
    const page = await cx.visit.start();
    const api = encodeURIComponent(cx.server.url);
    await page.goto(`${cx.visit.app}/?assistantId=agent&apiUrl=${api}&chatHistoryOpen=true`);
    await page.getByRole("button", { name: "another one" }).waitFor();
    await page.getByRole("button", { name: "the first of all" }).click();
    await page.getByText("Hello there, dear world.").waitFor();
    await cx.visit.shot("opened");
    assert.equal(await threadOf(page), thread);
  },
};

/** Sends a message, and waits until the graph asks for a decision. */
async function asked(cx, graph, text) {
  const page = await open(cx, graph);
  await say(page, text);
  await button(page, "Approve").waitFor();
  await idle(page);
  return { page, thread: await threadOf(page) };
}

/** Approves the question that the app shows, and rejects the next one. Returns the actions that they are about. */
async function decideBoth(cx, page) {
  const first = await title(page).innerText();
  await cx.visit.shot("both");
  await button(page, "Approve").click();
  await title(page).filter({ hasNotText: first }).waitFor();
  await idle(page);
  const second = await title(page).innerText();
  await cx.visit.shot("one-left");
  await page.getByPlaceholder("Share feedback with the agent...").fill("Not this one.");
  await button(page, "Submit rejection").click();
  return [first, second];
}

/** Returns the title of the question that the app shows. */
function title(page, action = /./) {
  return page.locator("p.text-2xl", { hasText: action });
}

async function edit(page, text, changed) {
  await clickAt(page, groupOf(page, text), "Edit");
  await page.locator("textarea").first().fill(changed);
  await button(page, "Submit").click();
}
