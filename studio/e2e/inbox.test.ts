/** The inbox in the hand of somebody who has many questions: together, in bulk, in order and by keys. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { RaisedInterrupt, Thread } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { begin, Lab } from "./lab.ts";
import { SuitesServer } from "./suites_server.ts";

const PATIENT = { timeout: 15_000 };

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
});

const rows = (page: Page) => page.locator(".inbox-row a");
const row = (page: Page, text: string | RegExp) => rows(page).filter({ hasText: text });

describe("mails", () => {
  let lab: Lab;
  let watched: WatchedPage;
  let page: Page;
  const threads = new Map<string, string>();

  beforeAll(async () => {
    const tags = ["Q1", "Q2", "Q3", "Q4", "Q5"];
    lab = await Lab.start({ tags });
    for (const tag of tags) threads.set(tag, await begin.mail(lab, tag));
    watched = await WatchedPage.open(browser, lab.page);
    page = watched.page;
    await row(page, "Q5").waitFor();
  });
  afterAll(async () => {
    await watched?.close();
    await lab?.stop();
  });

  const threadOf = (tag: string) => threads.get(tag) ?? "";
  const answersTo = async (tag: string) => {
    const raised = await lab.call<RaisedInterrupt[]>("GET", `/superstep/threads/${threadOf(tag)}/interrupts`);
    return raised.filter(({ status }) => status === "answered").map(({ answer }) => answer);
  };
  /** The mails that went out. */
  const sent = () => {
    const folder = join(lab.folder, "home/mail/outbox");
    try {
      // A name that begins with a dot is a mail that is being written.
      const names = readdirSync(folder).filter((name) => !name.startsWith("."));
      return names.map((name) => readFileSync(join(folder, name), "utf8"));
    } catch {
      return [];
    }
  };

  test("`j` and `k` move, `e` edits, `r` responds, `i` ignores, `u` takes it back, and typing is typing", async () => {
    const current = page.locator('.inbox-row a[aria-current="true"]');
    await row(page, "Q1").click();
    for (const [key, tag] of [
      ["j", "Q2"],
      ["j", "Q3"],
      ["k", "Q2"],
      ["k", "Q1"],
    ] as const) {
      await page.keyboard.press(key);
      await expect.poll(() => current.textContent(), PATIENT).toContain(tag);
    }
    await page.keyboard.press("e");
    const edited = page.getByRole("textbox", { name: /response_text/ });
    await expect.poll(() => edited.evaluate((field) => field === document.activeElement), PATIENT).toBe(true);
    await page.keyboard.type("jkaeriu");
    expect(await edited.inputValue()).toContain("jkaeriu");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.keyboard.press("r");
    const text = page.getByRole("textbox", { name: "Your text to the agent" });
    await expect.poll(() => text.evaluate((field) => field === document.activeElement), PATIENT).toBe(true);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.keyboard.press("a");
    await page.getByText(/^Answered: Accept\./).waitFor();
    await page.keyboard.press("u");
    await page.getByText("Undone. Nothing was sent.").waitFor();
    expect(await answersTo("Q1")).toEqual([]);
    // It lets nothing happen outside, so it does not wait.
    await page.keyboard.press("i");
    await expect.poll(() => answersTo("Q1"), PATIENT).toEqual([{ type: "ignore", args: null }]);
    expect(sent()).toEqual([]);
  });

  test("several mails are approved with one list to read, and one that is not selected stays", async () => {
    await row(page, "Q3").click();
    await page.getByRole("button", { name: /like this/ }).click();
    const dialog = page.getByRole("dialog");
    const items = dialog.getByRole("listitem");
    await expect.poll(() => items.count(), PATIENT).toBe(4);
    // Every item shows with which arguments it would run.
    for (const tag of ["Q2", "Q3", "Q4", "Q5"])
      await items.filter({ hasText: `The report ${tag} is ready on Friday.` }).waitFor();
    await dialog.getByRole("checkbox", { name: /Q4/ }).uncheck();
    await dialog.getByRole("button", { name: "Approve 3 items" }).click();
    await expect.poll(() => sent().length, PATIENT).toBe(3);
    for (const tag of ["Q2", "Q3", "Q5"])
      expect(sent().filter((mail) => mail.includes(`The report ${tag} is ready`))).toHaveLength(1);
    expect(await answersTo("Q4")).toEqual([]);
    const { status } = await lab.call<Thread>("GET", `/threads/${threadOf("Q4")}`);
    expect(status).toBe("interrupted");
    await expect.poll(() => row(page, /report Q[235]/).count(), PATIENT).toBe(0);
    expect(await row(page, "Q4").count()).toBe(1);
  });

  test("the nearest deadline comes first, however late it was asked", async () => {
    // Each has looked once, and waits for the next time.
    for (const every of ["3d", "2h"])
      await lab.archie("atris", "watch", "@shop list orders", "--every", every, "--looks", "1", "--json");
    const inbox = await lab.inbox();
    expect(inbox.map(({ graph_id }) => graph_id)).toEqual(["atris_watch", "atris_watch", "email_assistant"]);
    await expect.poll(() => rows(page).count(), PATIENT).toBe(3);
    const shown = await rows(page).allTextContents();
    expect(shown[0]).toMatch(/Due in [12] hr/);
    expect(shown[1]).toMatch(/Due in [23] days/);
    expect(shown[2]).not.toContain("Due");
  });
});

test("one button answers two questions of a thread, in one request", async () => {
  const server = await SuitesServer.start("apps");
  try {
    const { thread_id } = await server.call<Thread>("POST", "/threads", {});
    const messages = [{ type: "human", content: "go" }];
    const run = { assistant_id: "two_nodes", input: { messages } };
    await server.call("POST", `/threads/${thread_id}/runs/wait`, run);
    const watched = await WatchedPage.open(browser, `${server.page}inbox`);
    const { page } = watched;
    const resumed: unknown[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST" && /\/runs$/.test(new URL(request.url()).pathname))
        resumed.push(request.postDataJSON().command.resume);
    });
    await rows(page).first().click();
    await page.getByText("This thread asks 2 questions.").waitFor();
    const send = page.getByRole("button", { name: /^Send .* answers$/ });
    expect(await send.isDisabled()).toBe(true);
    const questionOf = (text: string) => page.locator("article, section").filter({ hasText: text }).last();
    await questionOf("Send the mail?")
      .getByRole("button", { name: /^Accept/ })
      .click();
    await page.getByText("The questions without a decision stay open.").waitFor();
    await questionOf("Pay the money?")
      .getByRole("button", { name: /^Ignore/ })
      .click();
    await page.getByRole("button", { name: "Send all 2 answers" }).click();
    await page.getByRole("button", { name: "Send now" }).first().click();
    const said = async () => {
      const { values } = await server.call<{ values: { messages: { content: string }[] } }>(
        "GET",
        `/threads/${thread_id}/state`,
      );
      return values.messages.at(-1)?.content;
    };
    await expect.poll(said, PATIENT).toBe("Mail: accept. Payment: ignore.");
    expect(resumed).toHaveLength(1);
    expect(Object.keys(resumed[0] as object)).toHaveLength(2);
    await watched.close();
  } finally {
    server.stop();
  }
});
