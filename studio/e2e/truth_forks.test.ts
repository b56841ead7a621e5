/** What the fork dialog announces is what the fork then does, counted by those who receive it. */

import { readdirSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { ThreadState, ThreadTrace } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { note } from "./figures.ts";
import { begin, Lab, pause } from "./lab.ts";
import { readAnnouncement } from "./screen.ts";

/** Forks that did what was announced. */
let counted = 0;
let lab: Lab;
let browser: Browser;

beforeAll(async () => {
  lab = await Lab.start({ tags: Array(8).fill("Q1") });
  browser = await openBrowser();
});

afterAll(async () => {
  await browser.close();
  await lab.stop();
});

/** What others have received so far, by what the dialog calls it. */
interface Received {
  unsafe: number;
  read: number;
  reconcilable: number;
}

function received(): Received {
  const count = (method: string) => lab.shop.calls.filter((call) => call.startsWith(method)).length;
  return { unsafe: count("DELETE"), read: count("GET"), reconcilable: outbox().length };
}

function outbox(): string[] {
  try {
    // A name that begins with a dot is a mail that is being written.
    return readdirSync(join(lab.folder, "home/mail/outbox")).filter((name) => !name.startsWith("."));
  } catch {
    return [];
  }
}

async function modelCost(thread: string): Promise<{ calls: number; nanoDollars: number }> {
  const { cost } = await lab.call<ThreadTrace>("GET", `/superstep/threads/${thread}/trace`);
  return { calls: cost.model_calls, nanoDollars: cost.nano_dollars };
}

async function finish(thread: string, assistant: string): Promise<void> {
  for (let round = 0; round < 400; round++) {
    const { status } = await lab.call<{ status: string }>("GET", `/threads/${thread}`);
    if (status === "idle") return;
    if (status === "interrupted") {
      const { interrupts } = await lab.state(thread);
      const resume = Object.fromEntries(interrupts.map(({ id }) => [id, { type: "accept" }]));
      await lab.wait(thread, assistant, { command: { resume } });
    }
    await pause(50);
  }
  throw new Error(`${assistant} does not end`);
}

async function checkpointBefore(thread: string, node: string): Promise<string> {
  const history = await lab.call<ThreadState[]>("POST", `/threads/${thread}/history`, { limit: 100 });
  const found = history.findLast((state) => state.next[0] === node);
  if (!found?.checkpoint_id) throw new Error(`nothing runs ${node}`);
  return found.checkpoint_id;
}

async function startFork(page: Page, isCopy: boolean): Promise<string> {
  const dialog = page.getByRole("dialog");
  await dialog.getByText("The same again").click();
  if (isCopy) await dialog.getByText("In a copy of the thread").click();
  const confirm = dialog.getByText("I know that this happens a second time.");
  if ((await confirm.count()) > 0) await confirm.click();
  const before = page.url();
  await dialog.getByRole("button", { name: "Start the fork" }).click();
  await dialog.waitFor({ state: "detached" });
  if (isCopy) await page.waitForURL((url) => url.href !== before && !url.search);
  return new URL(page.url()).pathname.split("/").at(-1) ?? "";
}

const FORKS: [agent: "atris" | "reads" | "mail", node: string, isCopy: boolean][] = [
  ["atris", "execute_request_node", false],
  ["atris", "extract_category_node", false],
  ["atris", "reset_state_node", false],
  ["reads", "extract_category_node", false],
  ["mail", "response_agent", false],
  ["mail", "triage_router", true],
  ["mail", "mark_as_read_node", false],
];

const START = {
  atris: () => begin.atris(lab, ""),
  reads: async () => {
    const thread = await lab.newThread();
    await lab.wait(thread, "atris", { input: { query: "@shop list orders" } });
    return thread;
  },
  mail: () => begin.mail(lab, "Q1"),
};

const ASSISTANT = { atris: "atris", reads: "atris", mail: "email_assistant" };

test.each(FORKS)(
  "a fork of %s at %s (in a copy: %s) repeats what was announced",
  async (agent, node, isCopy) => {
    const assistant = ASSISTANT[agent];
    const thread = await START[agent]();
    await finish(thread, assistant);
    const checkpoint = await checkpointBefore(thread, node);
    const watched = await WatchedPage.open(browser, `${lab.page}threads/${thread}?checkpoint=${checkpoint}`);
    const { page } = watched;
    await page.getByRole("button", { name: "Fork here" }).first().click();
    const { classes, models, cost } = await readAnnouncement(page);
    const announced = { unsafe: 0, read: 0, reconcilable: 0, ...classes, calls: models, cost };
    const [before, costBefore] = [received(), await modelCost(thread)];
    const forked = await startFork(page, isCopy);
    await finish(forked, assistant);
    const [after, costAfter] = [received(), await modelCost(forked)];
    const seen = (name: keyof Received) => after[name] - before[name];
    const dollars = (costAfter.nanoDollars - costBefore.nanoDollars) / 1e9;
    expect({
      unsafe: seen("unsafe"),
      read: seen("read"),
      reconcilable: seen("reconcilable"),
      calls: costAfter.calls - costBefore.calls,
      cost: `$${Number(dollars.toPrecision(3))}`,
    }).toEqual(announced);
    await watched.close();
    note("truth_forks", { forks: ++counted });
  },
);

test("an answer where the thread still waits repeats nothing, and the dialog says so", async () => {
  const thread = await begin.atris(lab, "");
  const watched = await WatchedPage.open(browser, `${lab.page}threads/${thread}`);
  const { page } = watched;
  await page.getByRole("button", { name: "Fork here" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("The thread still waits here.").waitFor();
  expect(await dialog.locator(".fork-lines").count()).toBe(0);
  const before = received();
  await lab.wait(thread, "atris", { command: { resume: { type: "accept" } } });
  expect(received()).toEqual({ ...before, unsafe: before.unsafe + 1 });
  await watched.close();
});
