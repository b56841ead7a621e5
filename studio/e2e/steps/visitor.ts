/** What a visitor does with the mouse, by roles and names. */

import type { Locator, Page } from "playwright-core";

import type { Story } from "./stories.ts";

const nav = (page: Page) => page.getByRole("navigation");

/** Starts an agent with the form, and returns its thread. */
export async function startAgent(page: Page, story: Story, tag: string, folder: string): Promise<string> {
  await nav(page).getByRole("link", { name: "Start", exact: true }).click();
  await page.getByRole("link", { name: story.startName, exact: true }).click();
  await story.fill(page, tag, folder);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/threads\/[0-9a-f-]+/);
  return page.url().replace(/.*\/threads\/([0-9a-f-]+).*/, "$1");
}

/** Opens the question of an agent in the inbox. */
export async function openQuestion(page: Page, story: Story): Promise<Locator> {
  await nav(page)
    .getByRole("link", { name: /^Inbox/ })
    .click();
  await rowOf(page, story).click();
  const question = page.getByRole("article").first();
  await question.waitFor();
  return question;
}

/** The line of an agent in the inbox. */
export function rowOf(page: Page, story: Story): Locator {
  const list = page.getByRole("list", { name: /Open questions/ });
  return list.getByRole("link", { name: new RegExp(`^${story.inboxName}`) });
}

/** Answers, without the seconds in which the answer could be undone. */
export async function giveAnswer(
  question: Locator,
  answer: (question: Locator) => Promise<void>,
): Promise<void> {
  await answer(question);
  const now = question.getByRole("button", { name: "Send now" });
  if (await now.isVisible()) await now.click();
}

export async function openThread(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole("tab", { name: "Branches" }).waitFor();
}

export const openTab = (page: Page, name: string) => page.getByRole("tab", { name, exact: true }).click();

/** The status of a thread, next to its name. */
export const statusOf = (page: Page, status: string) => page.getByRole("status").filter({ hasText: status });

/** Opens the fork dialog at a checkpoint of the first branch that asked a person; 0 is the oldest. */
export async function openFork(page: Page, asked: number): Promise<Locator> {
  await openTab(page, "Branches");
  const branch = branchOf(page, 1);
  await branch.getByText(/^\d+ checkpoints?$/).click();
  const steps = branch.getByRole("listitem").filter({ hasText: "asked a person" });
  await steps.first().waitFor();
  // The newest comes first.
  await steps
    .nth((await steps.count()) - 1 - asked)
    .getByRole("button", { name: /^Fork here/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Fork from this checkpoint" });
  await dialog.getByRole("radio", { name: /^Another answer/ }).check();
  return dialog;
}

export function branchOf(page: Page, place: number): Locator {
  const heading = page.getByRole("heading", { name: `Branch ${place}`, exact: true });
  return page.getByRole("region", { name: "Branches" }).getByRole("listitem").filter({ has: heading });
}

/** Compares the first two branches, and returns where it says how they differ. */
export async function compareBranches(page: Page): Promise<Locator> {
  for (const place of [1, 2]) await page.getByRole("checkbox", { name: `Compare Branch ${place}` }).check();
  const comparison = page.getByRole("region", { name: "Branch 1 and Branch 2" });
  await comparison.getByText("First difference", { exact: true }).waitFor();
  return comparison;
}
