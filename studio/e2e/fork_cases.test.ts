/** From the page alone: a fork with another model, and a test case that the program plays again. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { TestCase, ThreadState, ThreadTrace, TraceSpan } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { begin, Lab } from "./lab.ts";
import { openTab, openThread, statusOf } from "./steps/visitor.ts";

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
  lab = await Lab.start({ tags: ["Q1", "Q2"], args: ["--allow-model", `script:${other}`] });
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

/** Plays a test case with the program alone. */
function play(made: TestCase): { status: number | null; printed: string } {
  const file = join(folder, "a.case.json");
  writeFileSync(file, JSON.stringify(made));
  const env = { ...process.env, ARCHIE_HOME: join(folder, "home"), HOME: folder };
  const played = spawnSync(process.env.ARCHIE ?? "", ["test", file], { env, encoding: "utf8" });
  return { status: played.status, printed: played.stdout + played.stderr };
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
  // The branch of the fork is a case of its own, without the answers and replies of the first branch.
  const made = await lab.call<TestCase>("GET", `/superstep/threads/${thread}/case`);
  expect(made.script.replies.length).toBe(1);
  expect(play(made)).toMatchObject({ status: 0 });
});

test("a test that is made of a mail plays to the same state, and not with another reply", async () => {
  const thread = await begin.mail(lab, "Q2");
  const { interrupts } = await lab.state(thread);
  const resume = Object.fromEntries(interrupts.map(({ id }) => [id, { type: "accept" }]));
  await lab.wait(thread, "email_assistant", { command: { resume } });
  const watched = await WatchedPage.open(browser, lab.page);
  const { page } = watched;
  await openThread(page, `${lab.page}threads/${thread}`);
  await openTab(page, "Branches");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Make a test of it: Branch 1" }).click();
  const made = JSON.parse(readFileSync(await (await download).path(), "utf8")) as TestCase;
  await page.getByText(/^Saved .*archie test/).waitFor();
  await watched.close();
  expect(made.not_recovered).toEqual([]);
  const { values } = await lab.state(thread);
  expect(made.expected.values).toMatchObject({ ended: (values as { ended: string }).ended });
  const played = play(made);
  expect(played.status, played.printed).toBe(0);
  const sort = made.script.replies.find(({ at }) => (at as unknown) === "triage_router") as
    | { json: { classification: string } }
    | undefined;
  if (!sort) throw new Error("the case has no reply for the triage");
  sort.json.classification = "ignore";
  const other = play(made);
  expect(other.status, other.printed).toBe(1);
  expect(other.printed).toContain("FAIL");
});
