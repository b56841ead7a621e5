/** First visits: what somebody who has never seen the page does, from its root, with at most eight clicks. */

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { CheckpointTree, Thread } from "../src/api/types.ts";
import { shortId } from "../src/pure/format.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { begin, Lab } from "./lab.ts";
import { answer } from "./pictures.ts";
import { failedThread } from "./tour.ts";

const CLICKS_MAX = 8;

let browser: Browser;
let lab: Lab;
let sent: string;
let waiting: string;

beforeAll(async () => {
  browser = await openBrowser();
  // The example that the page offers asks for the report, too.
  lab = await Lab.start({ tags: ["Q1", "Q1", "Q2", "ready?"] });
  sent = await begin.mail(lab, "Q1");
  await answer(lab, sent, "email_assistant", { type: "accept" });
  await failedThread(lab);
  waiting = await begin.mail(lab, "Q2");
});

afterAll(async () => {
  await browser?.close();
  await lab?.stop();
});

/** Somebody who clicks on what they read. The browser counts. */
class Visitor {
  readonly watched: WatchedPage;
  readonly page: Page;

  private constructor(watched: WatchedPage) {
    this.watched = watched;
    this.page = watched.page;
  }

  static async arrive(): Promise<Visitor> {
    return new Visitor(await WatchedPage.open(browser, lab.page));
  }

  clicks = 0;

  async click(target: Locator, options?: Parameters<Locator["click"]>[0]): Promise<void> {
    this.clicks += 1;
    await target.click(options);
  }

  async link(name: string | RegExp): Promise<void> {
    await this.click(this.page.getByRole("link", { name }).first());
  }

  async button(name: string | RegExp): Promise<void> {
    await this.click(this.page.getByRole("button", { name }).first());
  }

  /** Steps back along the timeline to a checkpoint that is described so. */
  async timeline(wanted: RegExp): Promise<void> {
    const slider = this.page.getByRole("slider", { name: "Checkpoint" });
    await slider.waitFor();
    while (!wanted.test((await slider.getAttribute("aria-valuetext")) ?? ""))
      await this.button("Previous checkpoint");
  }

  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  async leave(): Promise<void> {
    await this.watched.close();
    expect(this.clicks).toBeLessThanOrEqual(CLICKS_MAX);
  }
}

describe("a first visit takes at most eight clicks", () => {
  test("to see the cost of a run, call by call", async () => {
    const visitor = await Visitor.arrive();
    await visitor.link("Threads");
    await visitor.link(new RegExp(shortId(sent)));
    await visitor.sees(/\$0\.0/);
    await visitor.click(visitor.page.getByRole("tab", { name: "Trace" }));
    await visitor.sees("expensive");
    await visitor.leave();
  });

  test("to find why a run failed", async () => {
    const visitor = await Visitor.arrive();
    await visitor.link("Threads");
    await visitor.link(/failed/);
    await visitor.sees("The last run failed.");
    await visitor.sees(/no reply/);
    await visitor.leave();
  });

  test("to answer a mail", async () => {
    const visitor = await Visitor.arrive();
    await visitor.link(/The report Q2/);
    await visitor.button(/^Accept/);
    await visitor.sees("No open questions.");
    await visitor.leave();
    const { status } = await lab.call<Thread>("GET", `/threads/${waiting}`);
    expect(status).toBe("idle");
  });

  test("to try another answer", async () => {
    const visitor = await Visitor.arrive();
    await visitor.link("Threads");
    await visitor.link(new RegExp(shortId(sent)));
    await visitor.timeline(/waits for an answer/);
    await visitor.button("Fork here");
    await visitor.click(visitor.page.getByRole("radio", { name: "Ignore" }));
    await visitor.click(visitor.page.getByRole("checkbox", { name: /second time/ }));
    await visitor.button("Start the fork");
    await visitor.sees(/finished/);
    await visitor.leave();
    const tree = await lab.call<CheckpointTree>("GET", `/superstep/threads/${sent}/tree`);
    expect(tree.branches.length).toBe(2);
  });

  test("to start an agent", async () => {
    const visitor = await Visitor.arrive();
    await visitor.link("Start");
    await visitor.link("Start Answer a mail");
    await visitor.button("Fill in an example");
    await visitor.button("Start");
    await visitor.sees("waiting for an answer");
    await visitor.leave();
  });
});
