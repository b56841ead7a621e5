/** What mails, models and other people write can do nothing on the page, and other pages can do nothing to the server. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, WatchedPage } from "./browser.ts";
import { fill, type HostileData, problemsOf, speakForAnother, startHostileLab } from "./hostile.ts";
import type { Lab } from "./lab.ts";
import { PAYLOADS } from "./payloads.ts";
import { panesOf, SECTIONS, settled, visit } from "./views.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
});

describe("a server full of hostile texts", () => {
  let lab: Lab;
  let data: HostileData;

  beforeAll(async () => {
    expect(PAYLOADS).toHaveLength(60);
    lab = await startHostileLab();
    data = await fill(lab);
  });
  afterAll(async () => {
    await lab?.stop();
  });

  /** Some of many alike, or all if there is time. */
  const some = (all: readonly string[]) => (process.env.LONG ? all : all.filter((_, at) => at % 12 === 6));

  const views = () => [
    ...SECTIONS,
    ...data.agents.flatMap(panesOf),
    ...panesOf(data.full),
    ...some(data.mails).flatMap((mail) => [`threads/${mail}?tab=agent`, `threads/${mail}?tab=state`]),
    ...["analyze", "email_assistant", "sheet", "atris", "docs"].map((agent) => `start/${agent}`),
    ...some(data.assistants).flatMap((id) => [`start/${id}`, `assistants/${id}`, `assistants/${id}/compare`]),
    ...some(data.crons).map((id) => `crons/${id}`),
    "assistants/new",
    "crons/new",
    "store?prefix=hostile",
    "nowhere",
  ];

  test("every view has the policy", async () => {
    for (const view of views()) {
      const { headers, status } = await fetch(lab.page + view);
      expect(status).toBe(200);
      expect(policyOf(headers)).toEqual(POLICY);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    }
  });

  test("no text runs, loads, leaves or passes for a control, in any view", async () => {
    const watched = await open(lab.page);
    const found: string[] = [];
    for (const view of views()) {
      await visit(watched.page, view);
      for (const problem of await problemsOf(watched.page)) found.push(`${view}: ${problem}`);
    }
    expect(found).toEqual([]);
    await watched.close();
  });

  test("nor in the question of any mail, on a phone", async () => {
    const watched = await open(lab.page, { width: 390, height: 800 });
    const found: string[] = [];
    for (const { interrupt } of await lab.inbox()) {
      await visit(watched.page, `inbox?item=${interrupt.id}`);
      for (const problem of await problemsOf(watched.page)) found.push(problem);
    }
    expect(found).toEqual([]);
    await watched.close();
  });

  test("nor in names, labels, messages and questions of another graph", async () => {
    const watched = await open("about:blank");
    await speakForAnother(watched.page, data.full);
    await watched.page.goto(lab.page);
    await settled(watched.page);
    const found: string[] = [];
    const items = PAYLOADS.map(({ mark }) => `inbox?item=${mark}`);
    const shown = process.env.LONG ? items : items.filter((_, at) => at % 4 === 1 || at > 54);
    for (const view of [...shown, ...panesOf(data.full)]) {
      await visit(watched.page, view);
      expect(await watched.page.textContent("#main")).not.toContain("React error");
      for (const problem of await problemsOf(watched.page)) found.push(`${view}: ${problem}`);
    }
    expect(found).toEqual([]);
    watched.problems.splice(
      0,
      watched.problems.length,
      ...watched.problems.filter((one) => !/about:blank/.test(one)),
    );
    await watched.close();
  });

  async function open(url: string, size: { width?: number; height?: number } = {}): Promise<WatchedPage> {
    const watched = await WatchedPage.open(browser, url, size);
    watched.page.on("dialog", (dialog) => {
      watched.problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    watched.page.on("popup", (popup) => watched.problems.push(`window: ${popup.url()}`));
    watched.page.on("framenavigated", (frame) => {
      if (!frame.url().startsWith(lab.page)) watched.problems.push(`went to ${frame.url()}`);
    });
    watched.page.on("download", (download) => watched.problems.push(`download: ${download.url()}`));
    return watched;
  }
});

const POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self' blob:",
  "font-src": "'self'",
  "connect-src": "'self'",
  "worker-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
  "require-trusted-types-for": "'script'",
  "trusted-types": "superstep#worker",
};

function policyOf(headers: Headers): Record<string, string> {
  const directives = (headers.get("content-security-policy") ?? "").split(";").map((text) => text.trim());
  return Object.fromEntries(
    directives.map((text) => [text.split(" ", 1)[0] ?? "", text.slice(text.indexOf(" ") + 1)]),
  );
}
