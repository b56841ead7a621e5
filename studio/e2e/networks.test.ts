/** Bad networks: connections that break in mid-token, and a server that is killed and comes back. */

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { isObject, type Json } from "../src/api/json.ts";
import type { InboxItem, Run, ThreadState } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { CuttingProxy } from "./cutting_proxy.ts";
import { Lab, mailOf, pause } from "./lab.ts";
import { SlowModel } from "./slow_model.ts";

const CUTS = process.env.LONG ? 200 : 10;
const KILLS = process.env.LONG ? 50 : 3;
const AWAY = /The server cannot be reached/;

let browser: Browser;
let model: SlowModel;
let lab: Lab;
let proxy: CuttingProxy;

beforeAll(async () => {
  browser = await openBrowser();
});

beforeEach(async () => {
  model = await SlowModel.start({ tokens: 60, delayMs: 25 });
  lab = await Lab.start({ model: model.name, env: model.env });
  proxy = await CuttingProxy.start(lab.url);
});

afterEach(async () => {
  proxy?.stop();
  await lab?.stop();
  model?.stop();
});

afterAll(async () => {
  await browser?.close();
});

test(`the network is cut ${CUTS} times in mid-token`, async () => {
  const watch = await watchThread();
  for (let cut = 0; cut < CUTS; ) {
    await nextText(watch);
    for (let times = 0; times < 3 && cut < CUTS; times++, cut++) {
      await untilWriting(watch);
      await CUT_WAYS[cut % CUT_WAYS.length]?.(watch);
    }
    await untilWriting(watch);
    model.isHeld = false;
    await expectSame(watch);
  }
  await watch.close();
});

test(`the server is killed and restarted ${KILLS} times in mid-token`, async () => {
  const watch = await watchThread();
  for (let kill = 0; kill < KILLS; kill++) {
    await nextText(watch);
    await untilWriting(watch);
    await lab.kill();
    await watch.page.getByText(AWAY).waitFor({ timeout: 5000 });
    await lab.restart();
    await watch.page.getByText(AWAY).waitFor({ state: "detached", timeout: 10_000 });
    await untilWriting(watch);
    model.isHeld = false;
    await expectSame(watch);
  }
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

/** Fails unless tokens are of one text, in order, from the first on. */
function expectWhole(shown: string): void {
  const tokens = [...shown.matchAll(/w(\d+)-(\d+)/g)];
  const text = tokens[0]?.[1];
  expect(tokens.map(([token]) => token)).toEqual(tokens.map((_, at) => `w${text}-${at}`));
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

/** Waits until the thread waits, and compares what is on screen with what the server says. */
async function expectSame({ thread, page }: Watch): Promise<void> {
  await waiting(thread);
  const state = await lab.call<ThreadState>("GET", `/threads/${thread}/state?subgraphs=true`);
  const expected = messagesIn(state);
  expect(expected.length).toBeGreaterThan(1);
  await expect.poll(async () => await shownMessages(page), { timeout: 10_000 }).toEqual(expected);
  await page.getByText(AWAY).waitFor({ state: "detached" });
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

/** Reads the whole conversation, by scrolling through it. What was replaced is not part of it. */
async function shownMessages(page: Page): Promise<string[]> {
  const rows = await page.evaluate(async () => {
    const scroller = document.querySelector(".conversation-scroll");
    const found = new Map<number, string>();
    if (!scroller) return [];
    for (let top = 0; ; top += scroller.clientHeight / 2) {
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
  });
  return rows.map(words);
}
