/** Chats and versions of assistants, with graphs that the program's own agents do not have. */

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import type { ThreadState } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { SuitesServer } from "./suites_server.ts";

const PATIENT = { timeout: 20_000 };

let browser: Browser;
let server: SuitesServer | undefined;

beforeAll(async () => {
  browser = await openBrowser();
});
afterEach(() => {
  server?.stop();
  server = undefined;
});
afterAll(async () => {
  await browser?.close();
});

async function open(graphs: "apps" | "javascript", path: string): Promise<WatchedPage> {
  server = await SuitesServer.start(graphs);
  return await WatchedPage.open(browser, `${server.page}${path}`);
}

async function send(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Your message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** The conversation that the server has. */
async function stored(page: Page): Promise<string[]> {
  const thread = new URL(page.url()).pathname.split("/").at(-1);
  const state = await server?.call<ThreadState>("GET", `/threads/${thread}/state`);
  const { messages = [] } = (state?.values ?? {}) as { messages?: { type: string; content: string }[] };
  return messages.map(({ type, content }) => `${type}: ${content}`);
}

const messages = (page: Page) => page.locator(".message:not([data-replaced])");

/** The words of the answer that is being written, each time that there are more. */
async function watchWriting(page: Page, end: string): Promise<string[]> {
  const seen: string[] = [];
  const last = messages(page).last();
  const isOver = async () => {
    const text = (await last.locator(".md, .plain-text").last().textContent()) ?? "";
    const isLive = ((await last.locator("header").textContent()) ?? "").includes("being written");
    if (isLive && text !== seen.at(-1)) seen.push(text);
    return !isLive && text.includes(end);
  };
  await expect.poll(isOver, { ...PATIENT, interval: 50 }).toBe(true);
  return seen;
}

test("an answer appears word by word, and a second message continues the conversation", async () => {
  const watched = await open("apps", "start/slow_chat");
  const { page } = watched;
  await send(page, "hello");
  await page.getByText("The assistant works…").waitFor();
  const grown = await watchWriting(page, "Good night.");
  expect(grown.length).toBeGreaterThan(3);
  // Words are added, and none is taken back.
  for (const [at, text] of grown.entries()) expect(text.startsWith(grown[at - 1] ?? "")).toBe(true);
  await send(page, "and again");
  await expect.poll(() => messages(page).count(), PATIENT).toBe(4);
  expect((await watchWriting(page, "Good night.")).length).toBeGreaterThan(3);
  await expect.poll(async () => (await stored(page)).length, PATIENT).toBe(4);
  const [first, , second, last] = await stored(page);
  expect([first, second]).toEqual(["human: hello", "human: and again"]);
  expect(last).toMatch(/^ai: You said: and again\./);
  const shown = await messages(page).locator(".md, .plain-text").allTextContents();
  expect(shown.map((text) => text.trim())).toEqual(
    (await stored(page)).map((text) => text.replace(/^\w+: /, "")),
  );
  await watched.close();
});

test("an assistant that asks in mid-chat is answered in the chat, and continues there", async () => {
  const watched = await open("apps", "start/refunds");
  const { page } = watched;
  await send(page, "a refund, please");
  await page.getByText("The assistant waits for an answer from you.").waitFor();
  await page.getByRole("button", { name: /^Accept/ }).click();
  await page.getByRole("button", { name: "Send now" }).click();
  await page.getByText("The tools said: paid 19.00 EUR for A-17").waitFor();
  await page.getByText("The assistant waits for an answer from you.").waitFor({ state: "detached" });
  expect((await stored(page)).at(-1)).toBe("ai: The tools said: paid 19.00 EUR for A-17");
  await send(page, "another one");
  await page.getByRole("button", { name: /^Ignore/ }).click();
  await expect.poll(async () => (await stored(page)).length, PATIENT).toBeGreaterThanOrEqual(8);
  await watched.close();
});

test("two versions of an assistant run on the same inputs, and the page shows where they differ", async () => {
  const watched = await open("javascript", "assistants");
  const { page } = watched;
  await page.getByRole("link", { name: "simple_runtime" }).first().click();
  await page.getByRole("heading", { name: "Versions" }).waitFor();
  for (const model of ["openai", "anthropic"]) {
    await page.getByRole("link", { name: "New version" }).click();
    await page.getByRole("radio", { name: model, exact: true }).check();
    await page.getByRole("button", { name: "Save as a new version" }).click();
    await page.getByRole("heading", { name: "Versions" }).waitFor();
  }
  await page.getByRole("heading", { name: "Version 3" }).waitFor();
  await page.getByRole("link", { name: "Compare two versions" }).click();
  await page.getByRole("radio", { name: "An input that you enter" }).check();
  await page.getByRole("checkbox", { name: /I know that the runs may act outside/ }).check();
  await page.getByRole("button", { name: "Run both" }).click();
  const result = page.locator("section").filter({ has: page.getByRole("heading", { name: "Input 1" }) });
  await result.getByRole("heading", { name: "First difference" }).waitFor();
  const change = (await result.getByRole("listitem").first().textContent()) ?? "";
  expect(change).toContain("openai");
  expect(change).toContain("anthropic");
  // Both ran: each is a thread of its own, with the settings of its version.
  const threads = await server?.call<{ values: unknown }[]>("POST", "/threads/search", {});
  const models = threads?.map(({ values }) => (values as { model: string }).model);
  expect(models?.toSorted()).toEqual(["anthropic", "openai"]);
  await watched.close();
});
