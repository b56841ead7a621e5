/** From the page alone: a fork with another model. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { ThreadState, ThreadTrace, TraceSpan } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { begin, Lab } from "./lab.ts";
import { statusOf } from "./steps/visitor.ts";

/** Its model thinks that the mails need no answer. */
const OTHER = {
  price: { input: 1000, output: 1000 },
  replies: [
    {
      at: "triage_router",
      usage: { input_tokens: 100, output_tokens: 10 },
      json: { quote: "When is the report ready?", reasoning: "Spam.", classification: "ignore" },
    },
  ],
};

let lab: Lab;
let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), "studio-models-"));
const other = join(folder, "other.json");

beforeAll(async () => {
  writeFileSync(other, JSON.stringify(OTHER));
  lab = await Lab.start({ tags: ["Q1"], args: ["--allow-model", `script:${other}`] });
  browser = await openBrowser();
});

afterAll(async () => {
  await browser.close();
  await lab.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The checkpoint after which a node ran for the first time. */
async function checkpointBefore(thread: string, node: string): Promise<string> {
  const history = await lab.call<ThreadState[]>("POST", `/threads/${thread}/history`, { limit: 100 });
  const found = history.findLast((state) => state.next[0] === node);
  if (!found?.checkpoint_id) throw new Error(`nothing runs ${node}`);
  return found.checkpoint_id;
}

/** The models that were asked in a span, by the ends of their names. */
function models(span: TraceSpan): string[] {
  const inner = span.spans.flatMap(models);
  return span.model === undefined ? inner : [...inner, span.model.split("/").at(-1) ?? ""];
}

async function start(dialog: Locator): Promise<void> {
  const confirm = dialog.getByText("I know that this happens a second time.");
  if ((await confirm.count()) > 0) await confirm.click();
  await dialog.getByRole("button", { name: "Start the fork" }).click();
  await dialog.waitFor({ state: "detached" });
}

test("a fork with another model asks only that model, and ends where it leads", async () => {
  const thread = await begin.mail(lab, "Q1");
  const checkpoint = await checkpointBefore(thread, "triage_router");
  const watched = await WatchedPage.open(browser, `${lab.page}threads/${thread}?checkpoint=${checkpoint}`);
  const { page } = watched;
  await page.getByRole("button", { name: "Fork here" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Fork from this checkpoint" });
  await dialog.getByRole("radio", { name: /^Another model or assistant/ }).check();
  const choices = dialog.getByRole("group", { name: /^Model/ }).getByRole("radio");
  await choices.first().waitFor();
  expect(await choices.count()).toBe(2);
  await dialog.getByRole("radio", { name: /other\.json$/ }).check();
  await dialog.getByText("has its own price").waitFor();
  await start(dialog);
  await statusOf(page, "finished").waitFor();
  const { values } = await lab.state(thread);
  expect(values).toMatchObject({ ended: "ignored" });
  const { runs } = await lab.call<ThreadTrace>("GET", `/superstep/threads/${thread}/trace`);
  const [before, ...after] = runs.map(models);
  expect(new Set(before)).toEqual(new Set(["script.json"]));
  expect(after.flat()).toEqual(["other.json"]);
  await watched.close();
});
