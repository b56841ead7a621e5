/** Ten tasks with the keyboard alone. Every control is found by its role and its name. */

import { readFileSync } from "node:fs";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import type { Budget, CheckpointTree, Cron, RaisedInterrupt, Thread } from "../src/api/types.ts";
import { shortId } from "../src/pure/format.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { Keyboard } from "./keyboard.ts";
import { begin, Lab, mailOf } from "./lab.ts";

import { answer } from "./pictures.ts";
import { failedThread, runningThread, SLOW } from "./tour.ts";

let browser: Browser;
let lab: Lab;
let watched: WatchedPage;
let keys: Keyboard;
/** A mail that was answered. */
let sent: string;

beforeAll(async () => {
  browser = await openBrowser();
  lab = await Lab.start({ tags: ["Q1", "Q2", "Q3", "Q3"], replies: [SLOW], args: ["--budget", "0.50"] });
  sent = await begin.mail(lab, "Q3");
  await answer(lab, sent, "email_assistant", { type: "accept" });
  watched = await WatchedPage.open(browser, lab.page);
  keys = await Keyboard.of(watched.page);
});

beforeEach(async () => {
  await watched.page.goto(lab.page);
  await watched.page.getByRole("heading", { name: "Inbox" }).waitFor();
});

afterAll(async () => {
  await watched?.close();
  await browser?.close();
  await lab?.stop();
});

const shows = (text: string | RegExp) => watched.page.getByText(text).first().waitFor();
const threadOf = (id: string) => lab.call<Thread>("GET", `/threads/${id}`);
const treeOf = (id: string) => lab.call<CheckpointTree>("GET", `/superstep/threads/${id}/tree`);

/** Waits until the server says so. */
async function eventually<T>(read: () => Promise<T>, isSo: (value: T) => boolean): Promise<void> {
  await expect.poll(async () => isSo(await read()), { timeout: 20_000 }).toBe(true);
}

/** Opens a thread as somebody does who knows its id. */
async function openThread(id: string): Promise<void> {
  await keys.press("Control+k");
  await keys.type(id);
  await watched.page.getByRole("option", { name: new RegExp(id.slice(0, 8)) }).waitFor();
  await keys.press("Enter");
  await watched.page.getByRole("tablist").waitFor();
}

async function openTab(name: string): Promise<void> {
  await keys.tabTo("tab", /./);
  await keys.arrowTo("ArrowRight", "tab", name);
  await keys.press("Enter");
}

describe("by keyboard alone", () => {
  test("finds a thread that failed", async () => {
    const failed = await failedThread(lab);
    await keys.follow("link", "Threads");
    await keys.tabTo("combobox", "Status");
    await keys.type("failed");
    await keys.follow("link", new RegExp(shortId(failed)));
    await shows("The last run failed.");
  });

  test("answers a mail", async () => {
    const mail = await begin.mail(lab, "Q1");
    await keys.follow("link", /The report Q1/);
    await keys.follow("button", /^Accept/);
    await shows("Answered: Accept.");
    expect((await keys.focused()).name).toBe("Answered: Accept");
    await eventually(
      () => threadOf(mail),
      ({ status }) => status === "idle",
    );
    expect((await keys.focused()).role).not.toBe("RootWebArea");
  });

  test("edits a mail before it is sent", async () => {
    const mail = await begin.mail(lab, "Q2");
    await keys.follow("link", /The report Q2/);
    await keys.follow("button", /^Edit/);
    await keys.tabTo("textbox", /response_text/);
    await keys.replace("The report is ready on Monday.");
    await keys.follow("button", "Send with changes");
    const answers = () => lab.call<RaisedInterrupt[]>("GET", `/superstep/threads/${mail}/interrupts`);
    await eventually(answers, (all) => JSON.stringify(all.map((each) => each.answer)).includes("on Monday"));
  });

  test("forks a thread with another answer", async () => {
    await openThread(sent);
    await keys.tabTo("slider", "Checkpoint");
    const slider = watched.page.getByRole("slider");
    for (let steps = 0; steps < 10; steps += 1) {
      if ((await slider.getAttribute("aria-valuetext"))?.includes("waits for an answer")) break;
      await keys.press("ArrowLeft");
    }
    await keys.follow("button", "Fork here");
    await keys.tabTo("radio", "Accept");
    await keys.arrowTo("ArrowDown", "radio", "Ignore");
    await keys.tabTo("checkbox", "I know that this happens a second time.");
    await keys.press("Space");
    await keys.follow("button", "Start the fork");
    await eventually(
      () => treeOf(sent),
      ({ branches }) => branches.length === 2,
    );
  });

  test("compares two branches", async () => {
    await openThread(sent);
    await openTab("Branches");
    for (const name of ["Compare Branch 1", "Compare Branch 2"]) {
      await keys.tabTo("checkbox", name);
      await keys.press("Space");
    }
    await shows("First difference");
  });

  test("cancels a run", async () => {
    const running = await runningThread(lab);
    await openThread(running);
    await keys.follow("button", "Cancel run");
    await eventually(
      () => threadOf(running),
      ({ status }) => status !== "busy",
    );
  });

  test("raises a budget", async () => {
    await keys.follow("link", "Budgets");
    await keys.follow("button", /^Raise the budget of/);
    await keys.tabTo("textbox", /^New limit: Tokens/);
    await keys.type("987654");
    await keys.press("Enter");
    await eventually(
      () => lab.call<Budget[]>("GET", "/superstep/budgets"),
      (all) => JSON.stringify(all).includes("987654"),
    );
    // The dialog closes when the response is there, which can be after the server's list has the new limit.
    await eventually(
      async () => (await keys.focused()).name,
      (name) => /^Raise the budget of/.test(name),
    );
  });

  test("stops a cron", async () => {
    const cron = await lab.call<Cron>("POST", "/runs/crons", {
      assistant_id: "email_assistant",
      schedule: "0 9 * * 1-5",
      input: { email_input: mailOf("Q4") },
    });
    await keys.follow("link", "Crons");
    await keys.follow("button", /^Disable the cron of/);
    await eventually(
      () => lab.call<Cron>("GET", `/runs/crons/${cron.cron_id}`),
      ({ enabled }) => !enabled,
    );
  });

  test("searches everything, and then the state of a thread", async () => {
    await openThread(sent);
    await openTab("State");
    await keys.tabTo("searchbox", "Search in the state");
    await keys.type("direct question");
    await keys.press("Enter");
    await shows("1 of 1");
  });

  test("exports a branch as a test", async () => {
    await openThread(sent);
    await openTab("Branches");
    const download = watched.page.waitForEvent("download");
    await keys.follow("button", "Make a test of it: Branch 1");
    const made = JSON.parse(readFileSync(await (await download).path(), "utf8")) as {
      script: { replies: unknown[] };
    };
    expect(made.script.replies.length).toBeGreaterThan(0);
  });
});
