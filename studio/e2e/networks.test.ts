/** Bad networks: connections that break in mid-token, and a server that is killed and comes back. */

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { isObject, type Json } from "../src/api/json.ts";
import type { Assistant, InboxItem, RaisedInterrupt, Run, Thread, ThreadState } from "../src/api/types.ts";
import { openSubgraphs } from "../src/pure/state_view.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { CuttingProxy } from "./cutting_proxy.ts";
import { note } from "./figures.ts";
import { Lab, mailOf, pause } from "./lab.ts";
import { readTree } from "./screen.ts";
import { SlowModel } from "./slow_model.ts";

const CUTS = process.env.LONG ? 200 : 10;
const KILLS = process.env.LONG ? 50 : 3;
/** The banner that says that the server is away. */
const away = (page: Page) => page.getByRole("status").getByText("The server cannot be reached.");

let browser: Browser;
let model: SlowModel;
let lab: Lab;
let proxy: CuttingProxy;
let isRestarted = false;

beforeAll(async () => {
  browser = await openBrowser();
});

beforeEach(async () => {
  model = await SlowModel.start({ tokens: 20, delayMs: 50 });
  lab = await Lab.start({ model: model.name, env: model.env });
  proxy = await CuttingProxy.start(lab.url);
  isRestarted = false;
});

afterEach(async () => {
  proxy?.stop();
  await lab?.stop();
  model?.stop();
});

afterAll(async () => {
  await browser?.close();
});

test(`the network is cut ${CUTS} times in mid-token`, { timeout: 120_000 + CUTS * 5_000 }, async () => {
  const watch = await watchThread();
  for (let cut = 0; cut < CUTS; ) {
    await nextText(watch);
    for (let times = 0; times < 3 && cut < CUTS; times++, cut++) {
      await untilWriting(watch);
      await CUT_WAYS[cut % CUT_WAYS.length]?.(watch);
    }
    await untilWriting(watch);
    model.isHeld = false;
    await expectSettled(watch);
    if (process.env.LONG) console.log(`cut ${cut} times`);
  }
  await expectSame(watch);
  await watch.close();
  note("networks", { cuts: CUTS });
});

test(`the server is killed and restarted ${KILLS} times in mid-token`, {
  timeout: 120_000 + KILLS * 15_000,
}, async () => {
  const watch = await watchThread();
  for (let kill = 0; kill < KILLS; kill++) {
    await nextText(watch);
    await untilWriting(watch);
    await lab.kill();
    isRestarted = true;
    await away(watch.page).waitFor({ timeout: 5000 });
    await lab.restart();
    await away(watch.page).waitFor({ state: "detached", timeout: 10_000 });
    await untilWriting(watch);
    model.isHeld = false;
    await expectSettled(watch);
    if (process.env.LONG) console.log(`killed ${kill + 1} times`);
  }
  await expectSame(watch);
  await watch.close();
  note("networks", { kills: KILLS });
});

test("nothing that is typed is lost while the server is away, and what is sent then arrives once", async () => {
  model.options.tokens = 5;
  const thread = await lab.newThread();
  await lab.call("POST", `/threads/${thread}/runs`, {
    assistant_id: "email_assistant",
    input: { email_input: mailOf("x") },
  });
  const { interrupt } = await waiting(thread);
  const inbox = await WatchedPage.open(browser, `${proxy.url}/studio/inbox?item=${interrupt.id}`);
  const form = await openTab(inbox, "/studio/start/analyze");
  const chat = await openChat(inbox);
  const fields: Field[] = [
    { page: inbox.page, name: "Your text to the agent" },
    { page: form, name: /What do you want to find out/ },
    { page: chat, name: "Your message" },
  ];
  await inbox.page.getByRole("button", { name: /^Respond/ }).click();
  for (const { page, name } of fields) {
    await mark(page);
    await page.getByRole("textbox", { name }).fill("Before. ");
  }
  await lab.kill();
  for (const { page, name } of fields) {
    await away(page).waitFor({ timeout: 5000 });
    await page.getByRole("textbox", { name }).pressSequentially("While it was away.");
  }
  // One is sent while the server is away; it goes out when the server is back.
  await inbox.page.getByRole("button", { name: "Send", exact: true }).click();
  await inbox.page.getByText("the page sends the answer when it is back").waitFor();
  await chat.getByRole("button", { name: "Send", exact: true }).click();
  await chat.getByRole("alert").waitFor();
  await lab.restart();
  for (const { page } of fields) await away(page).waitFor({ state: "detached", timeout: 10_000 });
  for (const { page, name } of fields.slice(1)) {
    expect(await page.getByRole("textbox", { name }).inputValue()).toBe("Before. While it was away.");
    await expectNoReload(page);
  }
  const answers = async () => {
    const raised = await lab.call<RaisedInterrupt[]>("GET", `/superstep/threads/${thread}/interrupts`);
    return raised.filter(({ status }) => status === "answered").map(({ answer }) => answer);
  };
  const answered = [{ type: "response", args: "Before. While it was away." }];
  await expect.poll(answers, { timeout: 10_000 }).toEqual(answered);
  await expectNoReload(inbox.page);
  await inbox.close();
});

interface Field {
  page: Page;
  name: string | RegExp;
}

async function openTab({ context }: WatchedPage, path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${proxy.url}${path}`);
  return page;
}

/** A chat. None of the program's own agents has one, so the page is told that one of them takes messages. */
async function openChat({ context }: WatchedPage): Promise<Page> {
  const page = await context.newPage();
  await page.route("**/assistants/search", async (route) => {
    const response = await route.fetch();
    const all = (await response.json()) as Assistant[];
    const json = all.map((each) => (each.graph_id === "inquiry" ? { ...each, graph_id: "chat" } : each));
    await route.fulfill({ response, json });
  });
  await page.route("**/schemas", async (route) => {
    const properties = { messages: { type: "array", langgraph_type: "messages" } };
    const response = await route.fetch();
    const json = { ...(await response.json()), input_schema: { type: "object", properties } };
    await route.fulfill({ response, json });
  });
  await page.goto(`${proxy.url}/studio/start/chat`);
  return page;
}

test("a view that is opened while the server is away appears when it is back", async () => {
  const watched = await WatchedPage.open(browser, `${proxy.url}/studio/inbox`);
  const { page } = watched;
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  await mark(page);
  await lab.kill();
  await away(page).waitFor();
  for (const name of ["Threads", "Assistants", "Health"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await pause(300);
  }
  await lab.restart();
  await away(page).waitFor({ state: "detached", timeout: 10_000 });
  for (const name of ["Health", "Assistants", "Threads"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { name, level: 1 }).waitFor({ timeout: 5000 });
  }
  await expectNoReload(page);
  await watched.close();
});

test("an answer whose response is lost is given once", async () => {
  model.options.tokens = 5;
  const watch = await watchThread();
  await nextText(watch);
  model.isHeld = false;
  const { interrupt } = await waiting(watch.thread);
  await watch.page.goto(`${proxy.url}/studio/inbox?item=${interrupt.id}`);
  await mark(watch.page);
  proxy.lose(/^POST \/threads\/[^/]+\/runs /, 3);
  await watch.page.getByRole("button", { name: /^Ignore/ }).click();
  await expect.poll(() => proxy.lost, { timeout: 10_000 }).toBe(3);
  await expect.poll(async () => (await lab.inbox()).length, { timeout: 10_000 }).toBe(0);
  await pause(3000);
  const runs = await lab.call<Run[]>("GET", `/threads/${watch.thread}/runs`);
  expect(runs).toHaveLength(2);
  expect(await watch.page.getByText(/was first|refused|cannot be reached/).count()).toBe(0);
  await watch.close();
});

test("a start whose response is lost starts one run", async () => {
  model.options.tokens = 5;
  const watched = await WatchedPage.open(browser, `${proxy.url}/studio/start/email_assistant`);
  const { page } = watched;
  await page.getByRole("button", { name: "Fill in an example" }).click();
  proxy.lose(/^POST \/threads /, 8);
  proxy.lose(/^POST \/threads\/[^/]+\/runs /, 8);
  const start = page.getByRole("button", { name: "Start", exact: true });
  let clicks = 0;
  for (; !/\/studio\/threads\//.test(page.url()); clicks++) {
    await start.click();
    // The button is gone once the page shows the thread.
    const isReady = () => start.isEnabled({ timeout: 300 }).catch(() => false);
    const isOver = async () => /\/studio\/threads\//.test(page.url()) || (await isReady());
    await expect.poll(isOver, { timeout: 10_000 }).toBe(true);
  }
  expect(clicks).toBeGreaterThan(1);
  expect(proxy.lost).toBe(16);
  const threads = await lab.call<Thread[]>("POST", "/threads/search", {});
  expect(threads).toHaveLength(1);
  expect(await lab.call("GET", `/threads/${threads[0]?.thread_id}/runs`)).toHaveLength(1);
  await watched.close();
});

test("a network that swallows everything is noticed, and the page continues after it", async () => {
  const watch = await watchThread();
  await nextText(watch);
  await untilWriting(watch);
  proxy.isSilent = true;
  await away(watch.page).waitFor({ timeout: 15_000 });
  // The old connections stay dead; new ones work.
  proxy.isSilent = false;
  proxy.cut();
  await away(watch.page).waitFor({ state: "detached", timeout: 15_000 });
  await untilWriting(watch);
  model.isHeld = false;
  await expectSame(watch);
  await watch.close();
});

interface Watch {
  thread: string;
  page: Page;
  context: WatchedPage["context"];
  close: () => Promise<void>;
}

/** Starts a mail and opens its thread behind the proxy. The page gets a mark that a reload would remove. */
async function watchThread(): Promise<Watch> {
  const thread = await lab.newThread();
  await lab.call("PATCH", `/threads/${thread}`, { metadata: { graph_id: "email_assistant" } });
  const watched = await WatchedPage.open(browser, `${proxy.url}/studio/threads/${thread}?tab=messages`);
  const { page, context } = watched;
  await mark(page);
  return {
    thread,
    page,
    context,
    close: async () => {
      await expectNoReload(page);
      await watched.close();
    },
  };
}

/** Lets the model write a text that ends only when it is let go: the first one, or one more after an answer. */
async function nextText({ thread }: Watch): Promise<void> {
  model.isHeld = true;
  const open = (await lab.inbox()).find((item) => item.thread_id === thread);
  const resume = open && { [open.interrupt.id]: { type: "response", args: "Again, please." } };
  const body = resume ? { command: { resume } } : { input: { email_input: mailOf("x") } };
  await lab.call<Run>("POST", `/threads/${thread}/runs`, { assistant_id: "email_assistant", ...body });
}

async function mark(page: Page): Promise<void> {
  await page.evaluate(() => document.documentElement.setAttribute("data-marked", "yes"));
}

async function expectNoReload(page: Page): Promise<void> {
  expect(await page.evaluate(() => document.documentElement.getAttribute("data-marked"))).toBe("yes");
}

const CUT_WAYS: ((watch: Watch) => Promise<void>)[] = [
  // The connections break, and the next attempt succeeds.
  async () => proxy.cut(),
  // Nothing gets through for a while.
  async () => {
    proxy.isDown = true;
    proxy.cut();
    await pause(300);
    proxy.isDown = false;
  },
  // The machine has no network.
  async ({ context }) => {
    await context.setOffline(true);
    proxy.cut();
    await pause(300);
    await context.setOffline(false);
  },
];

/** Waits until the newest text grows on screen, and checks that no token of it is missing or there twice. */
async function untilWriting({ page }: Watch): Promise<void> {
  const before = await growing(page);
  const grows = async () => {
    const shown = await growing(page);
    return shown?.text === model.begun && (before?.text !== shown.text || before.tokens < shown.tokens);
  };
  await expect.poll(grows, { timeout: 15_000 }).toBe(true);
}

interface Growing {
  text: number;
  tokens: number;
}

async function growing(page: Page): Promise<Growing | undefined> {
  const shown = await page.evaluate(() => {
    const live = [...document.querySelectorAll(".message:not([data-replaced])")].filter((message) =>
      message.querySelector("header")?.textContent?.includes("being written"),
    );
    return live.at(-1)?.textContent ?? "";
  });
  const tokens = [...shown.matchAll(/w(\d+)-(\d+)/g)];
  if (tokens.length === 0) return undefined;
  expectWhole(shown);
  return { text: Number(tokens[0]?.[1]), tokens: tokens.length };
}

/**
 * Fails unless tokens are of one text, in order, from the first on. The server keeps tokens in memory only: those that it wrote after
 * a restart, before the page was back, come with the whole message.
 */
function expectWhole(shown: string): void {
  const tokens = [...shown.matchAll(/w(\d+)-(\d+)/g)];
  const [, text, first] = tokens[0] ?? [];
  const start = isRestarted ? Number(first) : 0;
  const wrong = tokens.findIndex(([token], at) => token !== `w${text}-${at + start}`);
  if (wrong >= 0) throw new Error(`${tokens[wrong]?.[0]} is not what follows ${tokens[wrong - 1]?.[0]}`);
}

async function waiting(thread: string): Promise<InboxItem> {
  let found: InboxItem | undefined;
  const find = async () => {
    found = (await lab.inbox()).find((item) => item.thread_id === thread);
    return found !== undefined;
  };
  await expect.poll(find, { timeout: 20_000 }).toBe(true);
  if (!found) throw new Error("the thread does not wait");
  return found;
}

/** Waits until the thread waits, and compares the last message on screen with what the server says. */
async function expectSettled({ thread, page }: Watch): Promise<void> {
  await waiting(thread);
  const state = await lab.call<ThreadState>("GET", `/threads/${thread}/state?subgraphs=true`);
  await expect
    .poll(async () => await drawnMessages(page, "end"), { timeout: 10_000 })
    .toContain(messagesIn(state).at(-1));
}

/** Waits until the thread waits, and compares what is on screen with what the server says. */
async function expectSame({ thread, page }: Watch): Promise<void> {
  await waiting(thread);
  const state = await lab.call<ThreadState>("GET", `/threads/${thread}/state?subgraphs=true`);
  const expected = messagesIn(state);
  expect(expected.length).toBeGreaterThan(1);
  await expect.poll(async () => await drawnMessages(page, "all"), { timeout: 60_000 }).toEqual(expected);
  await away(page).waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "State", exact: true }).click();
  expect(await shownStates(page)).toEqual(statesOf(state));
  await page.getByRole("tab", { name: "Messages", exact: true }).click();
}

/** The trees that the page draws: the thread's own state, and those of the subgraphs that it is inside of. */
async function shownStates(page: Page): Promise<Record<string, Json>> {
  await page.getByRole("tree", { name: "State", exact: true }).waitFor();
  const shown: Record<string, Json> = {};
  for (const tree of await page.getByRole("tree", { name: /^State\b/ }).all())
    shown[(await tree.getAttribute("aria-label")) ?? ""] = (await readTree(tree)).value;
  return shown;
}

/** The same, from what the server says. */
function statesOf(state: ThreadState): Record<string, Json> {
  const states: Record<string, Json> = { State: state.values as Json };
  for (const { name, values } of openSubgraphs(state)) states[`State of ${name}`] = values;
  return states;
}

/** The messages of a state as lines: the role and the text. Those of a subgraph that is running come with it. */
function messagesIn(state: ThreadState): string[] {
  const inner = (state.tasks ?? []).flatMap((task) => (task.state ? [task.state] : []));
  const lists = [state, ...inner].map(({ values }) =>
    isObject(values as Json) ? (values as { messages?: Json }).messages : [],
  );
  const longest = lists.reduce<Json[]>(
    (best, list) => (Array.isArray(list) && list.length > best.length ? list : best),
    [],
  );
  const messages = longest.filter(isObject);
  return messages.flatMap((message) => {
    if (message.type === "tool") return [];
    const calls = (Array.isArray(message.tool_calls) ? message.tool_calls : []).filter(isObject);
    const lines = calls.map(({ id, name, args }) => {
      const result = messages.find(({ tool_call_id }) => tool_call_id === id)?.content ?? "";
      return `${name}(${isObject(args) ? args.response_text : ""}) ${result}`;
    });
    return [words([`${message.type}: ${message.content}`, ...lines].join(" | "))];
  });
}

/** Without spaces and marks, which are drawn in another way. */
const words = (text: string) => text.replace(/[*`>\s]+/g, "");

/** Reads the end of the conversation, or all of it by scrolling through it. What was replaced is not part of it. */
async function drawnMessages(page: Page, part: "end" | "all"): Promise<string[]> {
  const rows = await page.evaluate(async (isAll) => {
    const scroller = document.querySelector(".conversation-scroll");
    const found = new Map<number, string>();
    if (!scroller) return [];
    for (let top = isAll ? 0 : scroller.scrollHeight; ; top += scroller.clientHeight / 2) {
      scroller.scrollTop = top;
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      for (const row of document.querySelectorAll(".conversation-rows > li")) {
        const message = row.querySelector(".message");
        if (!message || message.hasAttribute("data-replaced")) continue;
        const role = message.getAttribute("data-role");
        const isLive = /being written|not stored yet|incomplete/.test(
          message.querySelector("header")?.textContent ?? "",
        );
        const body = [...message.querySelectorAll(":scope > .md, :scope > .plain-text")];
        const text = body.map((part) => part.textContent).join(" ");
        const calls = [...message.querySelectorAll(".call")].map((call) => {
          const textOf = (selector: string) => call.querySelector(selector)?.textContent ?? "";
          return `${textOf("header bdi")}(${textOf(".arguments dd")}) ${textOf(".call-result .plain-text")}`;
        });
        const line = [`${isLive ? "live " : ""}${role}: ${text}`, ...calls].join(" | ");
        found.set(Number(row.getAttribute("aria-posinset")), line);
      }
      if (top + scroller.clientHeight >= scroller.scrollHeight) break;
    }
    return [...found].sort(([one], [other]) => one - other).map(([, text]) => text);
  }, part === "all");
  return rows.map(words);
}
