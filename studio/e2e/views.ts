/** Every view of the page, for tests that visit all of them. */

import type { Page } from "playwright-core";

export const SECTIONS = [
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
] as const;

const TABS = ["agent", "messages", "state", "graph", "trace", "branches", "compare", "files"];

/** Returns the addresses of all panes of a thread, below `/studio/`. */
export function panesOf(thread: string): string[] {
  return TABS.map((tab) => `threads/${thread}?tab=${tab}`);
}

/** Goes to a view without loading the page again, as a link of the page does, and waits until the view is there. */
export async function visit(page: Page, view: string): Promise<void> {
  await page.evaluate((to) => {
    const studio = location.pathname.replace(/\/studio.*/, "/studio/");
    history.pushState(null, "", studio + to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, view);
  await settled(page);
}

/** Waits until the view shows what it asked for. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(
    () => {
      const main = document.querySelector("#main");
      const status = [...document.querySelectorAll("[role=status]")].map((found) => found.textContent ?? "");
      return main && main.textContent !== "" && !status.some((text) => text.startsWith("Loading"));
    },
    undefined,
    { timeout: 20_000 },
  );
  // Lists measure their rows once more after they are drawn.
  await page.waitForTimeout(150);
}
