/** The views of which pictures are made, and a server that has something to show in each of them. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Page } from "playwright-core";

import type { Json } from "../src/api/json.ts";
import type { Thread, ThreadState } from "../src/api/types.ts";
import { begin, Lab, mailOf } from "./lab.ts";
import { type OtherGraphs, settleOtherGraphs, startOtherGraphs, stopOtherGraphs } from "./other_graphs.ts";
import { scriptFor } from "./script.ts";

/** Words that make the scripted texts read well. */
const ANSWERED = "Q3";
const REPORTS = ["Q1", "Q2"] as const;
const ORDERS = "per shop";
const DECIDED = "per day";
const UNFINISHED = "per week";
const SHEET = "for Monday";

export interface Scene {
  lab: Lab;
  /** Where its pages think that they are in time, so that times are the same in all pictures. */
  now: number;
  /** An interview that waits for an answer, one with a result, and one that failed. */
  analyze: string;
  claims: string;
  failed: string;
  /** A mail that waits for approval, and one that was answered, with a fork of it. */
  mail: string;
  sent: string;
  /** The checkpoint at which the answered mail waited. */
  asked: string;
  sheet: string;
  atris: string;
  /** A page that waits to be refined, and one that is finished, with two versions. */
  docs: string;
  refined: string;
  /** What the agents of the lab do not have. */
  others: OtherGraphs;
}

/** Starts the server with a thread of every kind. `replies` are further ones of its model, `args` of the server. */
export async function startScene(replies: Json[] = [], args: string[] = []): Promise<Scene> {
  const tags = [ANSWERED, ANSWERED, ANSWERED, ...REPORTS, ORDERS, DECIDED, UNFINISHED, SHEET];
  // The name of the model is in pictures, so it is one that does not change.
  const folder = mkdtempSync(join(tmpdir(), "studio-model-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  process.chdir(folder);
  writeFileSync("demo-model", JSON.stringify(scriptFor(tags, replies)));
  const lab = await Lab.start({ model: "script:demo-model", args: ["--audit", ...args] });
  let others: OtherGraphs | undefined;
  try {
    others = await startOtherGraphs();
    const filled = await fill(lab);
    await settleOtherGraphs(others);
    return { ...filled, others };
  } catch (error) {
    await stopScene({ lab, others });
    throw error;
  }
}

/** Stops the servers of a scene, as far as they were started. */
export async function stopScene(
  scene: { lab: Lab; others: OtherGraphs | undefined } | undefined,
): Promise<void> {
  stopOtherGraphs(scene?.others);
  await scene?.lab.stop();
}

async function fill(lab: Lab): Promise<Omit<Scene, "others">> {
  const sent = await begin.mail(lab, ANSWERED);
  await answer(lab, sent, "email_assistant", { type: "accept" });
  const asked = await forkAtAnswer(lab, sent);
  const refined = await begin.docs(lab, "");
  await answer(lab, refined, "docs", { type: "accept" });
  const claims = await begin.analyze(lab, DECIDED);
  await answer(lab, claims, "analyze", "Only for each customer.");
  await answer(lab, claims, "analyze", "Solution approved.");
  const failed = await begin.analyze(lab, UNFINISHED);
  await answer(lab, failed, "analyze", "Only for each customer.");
  await answer(lab, failed, "analyze", "The team that owns orders.");
  const docs = await begin.docs(lab, "");
  const atris = await begin.atris(lab, "");
  const sheet = await begin.sheet(lab, SHEET);
  const analyze = await begin.analyze(lab, ORDERS);
  const mail = await begin.mail(lab, REPORTS[0]);
  await begin.mail(lab, REPORTS[1]);
  await fillOperate(lab);
  const now = Date.now() + 125_000;
  return { lab, now, analyze, claims, failed, mail, sent, asked, sheet, atris, docs, refined };
}

/** Gives another answer where the thread waited, so that it has two branches. */
async function forkAtAnswer(lab: Lab, thread: string): Promise<string> {
  const states = await lab.call<ThreadState[]>("GET", `/threads/${thread}/history?limit=20`);
  const checkpoint = states.find(({ interrupts }) => interrupts.length > 0)?.checkpoint_id;
  if (!checkpoint) throw new Error("the thread waited nowhere");
  await lab.call("POST", `/threads/${thread}/runs/wait`, {
    assistant_id: "email_assistant",
    checkpoint_id: checkpoint,
    input: null,
  });
  const { checkpoint_id } = await lab.state(thread);
  const args = { response_text: `The report ${ANSWERED} is ready on Thursday.` };
  const edited = { action: "send_email_tool", args };
  await answer(lab, thread, "email_assistant", { type: "edit", args: edited });
  return checkpoint_id ?? "";
}

export async function answer(lab: Lab, thread: string, assistant: string, value: unknown): Promise<void> {
  const item = (await lab.inbox()).find(({ thread_id }) => thread_id === thread);
  if (!item) throw new Error(`${assistant} asks nothing`);
  const resume = { [item.interrupt.id]: value };
  await lab.call("POST", `/threads/${thread}/runs/wait`, { assistant_id: assistant, command: { resume } });
}

/** A cron, a webhook that nobody receives, and items of the store. */
async function fillOperate(lab: Lab): Promise<void> {
  const input = { email_input: mailOf("Q4") };
  await lab.call("POST", "/runs/crons", { assistant_id: "email_assistant", schedule: "0 9 * * 1-5", input });
  await lab.call("POST", "/runs/crons", {
    assistant_id: "analyze",
    schedule: "30 7 * * 1",
    input: { userInput: "analyze: What changed?" },
  });
  const { thread_id } = await lab.call<Thread>("POST", "/threads", { metadata: { customer: "alice" } });
  const webhook = "https://hooks.example.com/superstep";
  await lab.call("POST", `/threads/${thread_id}/runs`, {
    assistant_id: "atris",
    input: { query: "@shop list orders" },
    webhook,
  });
  for (const [namespace, key, value] of ITEMS)
    await lab.call("PUT", "/store/items", { namespace, key, value });
}

const ITEMS: [string[], string, Record<string, unknown>][] = [
  [["preferences", "alice"], "tone", { text: "Short and friendly", since: "2026-03-02" }],
  [["preferences", "alice"], "hours", { from: "09:00", to: "17:00" }],
  [["preferences", "bob"], "tone", { text: "Formal" }],
];

export interface View {
  name: string;
  path: (scene: Scene) => string;
  /** The page of another server than the one with the agents. */
  page?: (scene: Scene) => string;
  /** What a visitor does before the picture. */
  prepare?: (page: Page) => Promise<void>;
  /** Which share of the pixels may differ, if times are drawn to scale. */
  tolerance?: number;
}

type ThreadName = Exclude<keyof Scene, "lab" | "now" | "asked" | "others">;

const tab = (thread: ThreadName, name: string) => (scene: Scene) => `threads/${scene[thread]}?tab=${name}`;
const press = async (page: Page, name: string | RegExp) =>
  await page.getByRole("button", { name }).first().click();

/** Selects an item of the inbox. */
const item = (name: RegExp) => async (page: Page) =>
  await page.locator(".inbox-list").getByText(name).first().click();

const chats = ({ others }: Scene) => others.chats.page;

async function chatIsThere(page: Page): Promise<void> {
  await page.getByText("Good night.").first().waitFor();
}

async function questionIsThere(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Accept/ }).waitFor();
}

/** Runs both versions on the same input, and waits for what came of them. */
async function compareVersions(page: Page): Promise<void> {
  await page.getByRole("radio", { name: "An input that you enter" }).check();
  await page.getByRole("checkbox", { name: /I know that the runs may act outside/ }).check();
  await press(page, "Run both");
  await page.getByRole("heading", { name: "First difference" }).waitFor();
}

export const VIEWS: View[] = [
  { name: "inbox", path: () => "inbox", prepare: item(/report Q1/) },
  {
    name: "inbox-edit",
    path: () => "inbox",
    prepare: async (page) => {
      await item(/report Q2/)(page);
      await press(page, /^Edit/);
      await page.getByLabel(/response_text/).fill("The report Q2 is ready on Thursday.");
    },
  },
  { name: "inbox-sheet", path: () => "inbox", prepare: item(/spreadsheet/i) },
  { name: "inbox-call", path: () => "inbox", prepare: item(/API caller/i) },
  { name: "inbox-gate", path: () => "inbox", prepare: item(/documentation/i) },
  { name: "inbox-interview", path: () => "inbox", prepare: item(/interview/i) },
  {
    name: "inbox-bulk",
    path: () => "inbox",
    prepare: async (page) => {
      await item(/report Q1/)(page);
      await press(page, /like this/);
    },
  },
  { name: "inbox-keys", path: () => "inbox", prepare: async (page) => await page.keyboard.press("?") },
  { name: "threads", path: () => "threads" },
  { name: "thread", path: ({ sent }) => `threads/${sent}` },
  { name: "question", path: ({ mail }) => `threads/${mail}` },
  { name: "failed", path: ({ failed }) => `threads/${failed}` },
  { name: "messages", path: tab("sent", "messages") },
  { name: "state", path: tab("sent", "state") },
  { name: "trace", path: tab("sent", "trace"), tolerance: 0.1 },
  { name: "branches", path: tab("sent", "branches") },
  {
    name: "compare",
    path: tab("sent", "compare"),
    prepare: async (page) => {
      const choice = page.getByLabel("Compare with", { exact: true });
      await choice.selectOption({ label: "the first checkpoint" });
    },
  },
  { name: "files", path: tab("sheet", "files") },
  {
    name: "outline",
    path: tab("sent", "agent"),
    prepare: async (page) => {
      const outline = page.getByRole("button", { name: "Outline" });
      if (await outline.isVisible()) await outline.click();
    },
  },
  { name: "analyze", path: tab("claims", "agent") },
  { name: "sheet", path: tab("sheet", "agent") },
  { name: "docs", path: tab("refined", "agent") },
  { name: "atris", path: tab("atris", "agent") },
  { name: "start", path: () => "start" },
  { name: "start-form", path: () => "start/email_assistant" },
  { name: "assistants", path: () => "assistants" },
  { name: "queue", path: () => "queue" },
  { name: "crons", path: () => "crons" },
  { name: "deliveries", path: () => "deliveries" },
  { name: "store", path: () => "store" },
  { name: "budgets", path: () => "budgets" },
  { name: "usage", path: () => "usage" },
  { name: "keys", path: () => "keys" },
  { name: "audit", path: () => "audit" },
  { name: "health", path: () => "health" },
  { name: "palette", path: () => "inbox", prepare: async (page) => await page.keyboard.press("Control+k") },
  { name: "not-found", path: () => "nothing" },
  {
    name: "fork",
    path: ({ sent, asked }) => `threads/${sent}?tab=branches&checkpoint=${asked}`,
    prepare: async (page) => {
      await press(page, "Fork here");
      await page.getByRole("radio", { name: /The same again/ }).check();
      await page.getByText("Expected cost").waitFor();
    },
  },
  // The last ones, so that those before them stay where they are on the sheets.
  {
    name: "chat",
    page: chats,
    path: ({ others }) => `start/slow_chat/${others.answered}`,
    prepare: chatIsThere,
  },
  {
    name: "chat-question",
    page: chats,
    path: ({ others }) => `start/refunds/${others.asking}`,
    prepare: questionIsThere,
  },
  {
    name: "versions",
    page: ({ others }) => others.versions.page,
    path: ({ others }) => `assistants/${others.assistant}/compare`,
    prepare: compareVersions,
  },
];
