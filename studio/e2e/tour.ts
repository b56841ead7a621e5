/** Every view of the page with its dialogs, and servers that have something to show in each of them, or nothing. */

import type { Page } from "playwright-core";

import type { Assistant } from "../src/api/types.ts";
import { begin, type Lab, pause } from "./lab.ts";
import { type Scene, startScene, VIEWS, type View } from "./pictures.ts";

export interface Tour extends Scene {
  /** A thread that runs for as long as the test. */
  running: string;
  /** A thread without a run. */
  unused: string;
  cron: string;
  /** The assistant that answers mail. */
  assistant: string;
}

/** A reply that nobody waits for to its end. */
export const SLOW = { at: "initial", expect: "orders for ever", text: "Well.", delay_ms: 3_600_000 };

export async function startTour(): Promise<Tour> {
  const scene = await startScene([SLOW], ["--budget", "5.00"]);
  const { lab } = scene;
  const [cron] = await lab.call<{ cron_id: string }[]>("POST", "/runs/crons/search", {});
  const graph_id = "email_assistant";
  const [assistant] = await lab.call<Assistant[]>("POST", "/assistants/search", { graph_id });
  return {
    ...scene,
    running: await runningThread(lab),
    unused: await lab.newThread(),
    cron: cron?.cron_id ?? "",
    assistant: assistant?.assistant_id ?? "",
  };
}

/** Starts an interview that the model knows nothing about. */
export async function failedThread(lab: Lab): Promise<string> {
  return await begin.analyze(lab, "of nobody");
}

/** Starts an interview whose reply is slow. */
export async function runningThread(lab: Lab): Promise<string> {
  const thread = await lab.newThread();
  const input = { userInput: "analyze: Choose a queue for orders for ever" };
  await lab.call("POST", `/threads/${thread}/runs`, { assistant_id: "analyze", input });
  for (let attempt = 0; attempt < 200; attempt++) {
    const { status } = await lab.call<{ status: string }>("GET", `/threads/${thread}`);
    if (status === "busy") return thread;
    await pause(20);
  }
  throw new Error("the thread does not run");
}

type Prepare = (page: Page) => Promise<void>;
const press =
  (...names: (string | RegExp)[]): Prepare =>
  async (page) => {
    for (const name of names) await page.getByRole("button", { name }).first().click();
  };
const thread =
  (name: Exclude<keyof Tour, "lab" | "now" | "others">, tab?: string) =>
  (tour: Tour): string =>
    `threads/${tour[name]}${tab ? `?tab=${tab}` : ""}`;
const at = (path: string) => () => path;
const radio = (name: string) => async (page: Page) => await page.getByRole("radio", { name }).first().check();
const then =
  (...steps: Prepare[]): Prepare =>
  async (page) => {
    for (const step of steps) await step(page);
  };

export interface Stop extends Omit<View, "path"> {
  path: (tour: Tour) => string;
}

const fork = press("Fork here");
const AGENTS = ["analyze", "sheet", "docs", "atris", "email_assistant"];

/** Views besides those of which pictures are made. */
const MORE: Stop[] = [
  {
    name: "inbox-respond",
    path: at("inbox"),
    prepare: async (page) => await inbox(page, /report/i, "Respond"),
  },
  { name: "inbox-gone", path: at("inbox?item=nothing") },
  { name: "palette-help", path: at("threads"), prepare: paletteHelp },
  {
    name: "palette-none",
    path: at("threads"),
    prepare: async (page) => await search(page, "nothing like this"),
  },
  { name: "threads-none", path: at("threads?status=busy&graph=nothing") },
  { name: "threads-wrong", path: at("threads?metadata=wrong&ids=wrong") },
  { name: "thread-running", path: thread("running", "trace") },
  { name: "thread-unused", path: thread("unused") },
  { name: "thread-unknown", path: at("threads/00000000-0000-4000-8000-000000000000") },
  { name: "thread-mail", path: thread("sent", "agent") },
  { name: "thread-graph", path: thread("refined", "graph") },
  { name: "thread-waiting", path: thread("mail", "state") },
  { name: "thread-files-none", path: thread("sent", "files") },
  { name: "thread-delete", path: thread("sent"), prepare: press("Delete") },
  { name: "thread-node", path: thread("sent", "graph"), prepare: press("Outline", /^llm_call/) },
  { name: "state-list", path: thread("sent", "state"), prepare: radio("Changes") },
  { name: "state-edit", path: thread("sent", "state"), prepare: press("Edit state") },
  { name: "state-review", path: thread("sent", "state"), prepare: press("Edit state", "Review") },
  { name: "branches-two", path: thread("sent", "branches"), prepare: bothBranches },
  { name: "fork-answer", path: thread("mail"), prepare: fork },
  { name: "fork-edit", path: thread("mail"), prepare: then(fork, radio("Edit")) },
  { name: "fork-again", path: thread("mail"), prepare: then(fork, radio("The same again")) },
  { name: "fork-state", path: thread("mail"), prepare: then(fork, radio("Another state")) },
  {
    name: "fork-assistant",
    path: thread("mail"),
    prepare: then(fork, radio("Another model or assistant")),
  },
  ...AGENTS.map((agent) => ({ name: `start-${agent}`, path: at(`start/${agent}`) })),
  { name: "start-filled", path: at("start/docs"), prepare: press(/example/i) },
  { name: "start-missing", path: at("start/sheet"), prepare: press("Start") },
  { name: "start-json", path: at("start/analyze"), prepare: radio("As JSON") },
  { name: "start-unknown", path: at("start/nothing") },
  { name: "assistant", path: ({ assistant }) => `assistants/${assistant}` },
  { name: "assistant-edit", path: ({ assistant }) => `assistants/${assistant}/edit` },
  { name: "assistant-compare", path: ({ assistant }) => `assistants/${assistant}/compare` },
  { name: "assistant-new", path: at("assistants/new") },
  { name: "cron", path: ({ cron }) => `crons/${cron}` },
  { name: "cron-new", path: at("crons/new") },
  { name: "cron-delete", path: at("crons"), prepare: press(/^Delete the cron/) },
  { name: "crons-none", path: at("crons?enabled=false") },
  { name: "store-item", path: at("store"), prepare: storeItem },
  { name: "store-new", path: at("store"), prepare: press("New item") },
  { name: "budget-raise", path: at("budgets"), prepare: press(/^Raise the budget/) },
  { name: "queue-cancel", path: at("queue"), prepare: press(/^Cancel run/) },
];

async function inbox(page: Page, subject: RegExp, name: string | RegExp): Promise<void> {
  await page.locator(".inbox-list").getByText(subject).first().click();
  await press(name)(page);
}

async function search(page: Page, text: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(text);
}

async function paletteHelp(page: Page): Promise<void> {
  await search(page, "keyboard");
  await page.keyboard.press("Enter");
}

async function bothBranches(page: Page): Promise<void> {
  for (const box of await page.getByRole("checkbox", { name: /^Compare/ }).all()) await box.check();
  await page.getByText("First difference").first().waitFor();
}

async function storeItem(page: Page): Promise<void> {
  await page.getByRole("link", { name: "tone" }).first().click();
}

export const STOPS: Stop[] = [...VIEWS, ...MORE];

/** What every section shows before there is anything. */
export const EMPTY: Stop[] = [
  "inbox",
  "threads",
  "start",
  "assistants",
  "queue",
  "crons",
  "deliveries",
  "store",
  "budgets",
  "usage",
  "keys",
  "audit",
  "health",
].map((name) => ({ name: `empty-${name}`, path: at(name) }));
