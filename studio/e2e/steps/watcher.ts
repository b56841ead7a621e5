/** Somebody else who looks at the same server, and how long a change takes to reach them. */

import { cpus, loadavg } from "node:os";

import type { Browser, Page } from "playwright-core";

import { WatchedPage } from "../browser.ts";
import { type Lab, pause } from "../lab.ts";

/** However much else the machine does, what takes longer is not live. */
const LOAD_MAX = 3;

/** Changes of others are to be seen within a second. A machine that has more to do than this test gets more time, up to a limit. */
export function seenWithin(): number {
  const load = (loadavg()[0] ?? 0) / cpus().length;
  return load <= 2 ? 1000 : 1000 * Math.min(load, LOAD_MAX);
}

export class Watcher {
  /** What happened, and how many milliseconds after the server knew it the page showed it. */
  readonly seen: [string, number][] = [];
  readonly inbox: WatchedPage;
  #thread: WatchedPage | undefined;
  readonly #lab: Lab;

  private constructor(lab: Lab, inbox: WatchedPage) {
    this.#lab = lab;
    this.inbox = inbox;
  }

  static async open(browser: Browser, lab: Lab): Promise<Watcher> {
    const watcher = new Watcher(lab, await WatchedPage.open(browser, lab.page));
    await watcher.inbox.page.getByRole("heading", { name: "Inbox" }).waitFor();
    return watcher;
  }

  /** Opens a thread next to the inbox. */
  async follow(browser: Browser, thread: string): Promise<Page> {
    await this.#thread?.close();
    this.#thread = await WatchedPage.open(browser, `${this.#lab.page}threads/${thread}`);
    return this.#thread.page;
  }

  async close(): Promise<void> {
    await this.#thread?.close();
    await this.inbox.close();
  }

  /** Waits until the server knows a change, then until the page shows it. */
  async sees(what: string, isKnown: () => Promise<boolean>, isShown: () => Promise<boolean>): Promise<void> {
    await until(what, isKnown);
    const known = performance.now();
    await until(`${what} on the page`, isShown);
    this.seen.push([what, Math.round(performance.now() - known)]);
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within a minute: ${what}`);
    await pause(15);
  }
}
