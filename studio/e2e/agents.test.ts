/**
 * Each of the five agents from the page alone: started, paused, answered, forked, compared and finished, while somebody else
 * watches. With `LONG=1`, all of them on both engines.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import type { CheckpointTree, RaisedInterrupt, Thread } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { Cluster } from "./cluster.ts";
import { note } from "./figures.ts";
import { Lab } from "./lab.ts";
import { repliesOfForks, type Story, stories } from "./steps/stories.ts";
import {
  branchOf,
  compareBranches,
  giveAnswer,
  openFork,
  openQuestion,
  openTab,
  rowOf,
  startAgent,
  statusOf,
} from "./steps/visitor.ts";
import { seenWithin, Watcher } from "./steps/watcher.ts";

const ON_CLUSTER = ["email_assistant", "atris"];
const TAG = "one";

describe.each(["local", "restate"] as const)("on the engine %s", (engine) => {
  let lab: Lab;
  let browser: Browser;
  let watcher: Watcher;
  let visitor: WatchedPage | undefined;

  beforeAll(async () => {
    const cluster = engine === "restate" ? { cluster: await Cluster.start() } : {};
    lab = await Lab.start({ tags: [TAG], replies: repliesOfForks([TAG]), ...cluster });
    browser = await openBrowser();
    watcher = await Watcher.open(browser, lab);
  });

  afterEach(async () => {
    await visitor?.close();
    visitor = undefined;
  });

  afterAll(async () => {
    await watcher?.close();
    await browser?.close();
    await lab?.stop();
    const times = watcher.seen.map(([, ms]) => ms).sort((a, b) => a - b);
    const median = times[Math.floor(times.length / 2)];
    const longest = times.at(-1);
    console.log(`${engine}: ${times.length} changes seen, median ${median} ms, longest ${longest} ms`);
    if (median === undefined || longest === undefined) return;
    note("agents", {
      [`${engine}_changes`]: times.length,
      [`${engine}_seen_median_ms`]: median,
      [`${engine}_seen_longest_ms`]: longest,
    });
  });

  const isTested = ({ graph }: Story) => engine === "local" || process.env.LONG || ON_CLUSTER.includes(graph);

  it.each(stories.filter(isTested))(
    "$graph is started, answered, forked, compared and finished",
    async (story) => {
      visitor = await WatchedPage.open(browser, lab.page);
      const { page } = visitor;
      page.setDefaultTimeout(30_000);
      const folder = join(lab.folder, "visitor", story.graph);
      mkdirSync(folder, { recursive: true });

      const thread = await startAgent(page, story, TAG, folder);
      const server = new ServerView(lab, thread);
      const inbox = watcher.inbox.page;
      const before = watcher.seen.length;
      await watcher.sees("asked", server.isAsking, () => rowOf(inbox, story).isVisible());
      const watched = await watcher.follow(browser, thread);
      await statusOf(watched, "waiting for an answer").waitFor();

      for (const [at, answer] of story.answers.entries()) {
        await giveAnswer(await openQuestion(page, story), answer);
        const isLast = at === story.answers.length - 1;
        if (isLast) await watcher.sees("answered", server.hasAnswered(at + 1), gone(inbox, story));
        else
          await watcher.sees("asked again", server.hasAsked(at + 2), () => rowOf(inbox, story).isVisible());
      }
      await watcher.sees("finished", server.isFinished, () => statusOf(watched, "finished").isVisible());
      await page.goto(`${lab.page}threads/${thread}`);
      await openTab(page, "Result");
      await expectText(page, story.result(TAG));
      const effects = story.outside?.(lab);

      await openTab(watched, "Branches");
      const dialog = await openFork(page, story.forkedQuestion);
      await story.otherAnswer(dialog);
      const confirmation = dialog.getByRole("checkbox", { name: /happens a second time/ });
      if (story.repeatsEffects) await confirmation.check();
      else expect(await confirmation.count()).toBe(0);
      await dialog.getByRole("button", { name: "Start the fork" }).click();
      await watcher.sees("forked", server.isForked, () => branchOf(watched, 2).isVisible());
      await dialog.waitFor({ state: "hidden" });
      await watcher.sees("finished", server.isFinished, () => statusOf(watched, "finished").isVisible());
      await openTab(page, "Result");
      await expectText(page, story.otherResult(TAG));
      expect(story.outside?.(lab)).toEqual(effects);

      await openTab(page, "Branches");
      for (const place of [1, 2])
        await branchOf(page, place).getByText("finished", { exact: true }).waitFor();
      const comparison = await compareBranches(page);
      expect(await comparison.textContent()).toMatch(story.difference);
      const limit = seenWithin();
      expect(watcher.seen.slice(before).filter(([, ms]) => ms > limit)).toEqual([]);
    },
  );
});

/** What the server says about a thread. */
class ServerView {
  readonly #lab: Lab;
  readonly #id: string;

  constructor(lab: Lab, thread: string) {
    this.#lab = lab;
    this.#id = thread;
  }

  readonly isAsking = async () => {
    await this.#thread();
    return (await this.#lab.inbox()).some((item) => item.thread_id === this.#id);
  };

  readonly hasAsked = (count: number) => async () => (await this.#raised()).length >= count;

  readonly hasAnswered = (count: number) => async () =>
    (await this.#raised()).filter(({ status }) => status === "answered").length >= count;

  readonly isFinished = async () => (await this.#thread()).status === "idle";

  readonly isForked = async () => {
    const tree = await this.#lab.call<CheckpointTree>("GET", `/superstep/threads/${this.#id}/tree`);
    return tree.branches.length > 1;
  };

  async #thread(): Promise<Thread> {
    const thread = await this.#lab.call<Thread>("GET", `/threads/${this.#id}`);
    if (thread.status === "error") throw new Error(JSON.stringify(thread.error));
    return thread;
  }

  async #raised(): Promise<RaisedInterrupt[]> {
    return await this.#lab.call("GET", `/superstep/threads/${this.#id}/interrupts`);
  }
}

const gone = (inbox: Page, story: Story) => async () => !(await rowOf(inbox, story).isVisible());

async function expectText(page: Page, text: RegExp): Promise<void> {
  await page.getByRole("tabpanel").getByText(text).first().waitFor();
}
