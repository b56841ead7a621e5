/**
 * The page for everyone: every view in both themes and at three widths, at 200 % zoom and from right to left, with targets that
 * can be hit and a focus that can be seen.
 *
 * By default each view is looked at in light at 1280 px and in dark at 390 px; `LONG=1` looks at all six combinations and
 * presses Tab through every view. `SCREENSHOTS=dir` writes a picture of each.
 */

import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, WatchedPage } from "./browser.ts";
import { Lab } from "./lab.ts";
import { overlaps, sidewaysScroll, smallTargets, unseenFocus } from "./layout.ts";
import { EMPTY, STOPS, type Stop, startLockedLab, startTour, type Tour } from "./tour.ts";

const isLong = process.env.LONG === "1";
const folder = process.env.SCREENSHOTS;

type Theme = "light" | "dark";
type Look = readonly [theme: Theme, width: number];
const WIDTHS = [1280, 768, 390];
const LOOKS: readonly Look[] = isLong
  ? WIDTHS.flatMap((width) => (["light", "dark"] as const).map((theme) => [theme, width] as const))
  : [
      ["light", 1280],
      ["dark", 390],
    ];
const PHONE = 390;
/** Sizes of targets, in CSS pixels. */
const TARGET = 24;
const FINGER = 44;

let browser: Browser;
let tour: Tour;
let empty: Lab;
let locked: Lab;
let watched: WatchedPage;

beforeAll(async () => {
  browser = await openBrowser();
  tour = await startTour();
  empty = await Lab.start();
  locked = await startLockedLab();
  watched = await WatchedPage.open(browser, tour.lab.page);
  if (folder) mkdirSync(folder, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  for (const lab of [tour?.lab, empty, locked]) await lab?.stop();
});

describe("every view is accessible, small and large, in both directions", () => {
  test.each(STOPS.map((stop) => [stop.name, stop] as const))("%s", async (_, stop) => {
    await visit(tour.lab, stop);
    await lookAt(stop.name);
  });

  test.each(EMPTY.map((stop) => [stop.name, stop] as const))("%s", async (_, stop) => {
    await visit(empty, stop);
    await lookAt(stop.name);
  });

  test("key form", async () => {
    await watched.page.setViewportSize({ width: 1280, height: 800 });
    await watched.page.goto(locked.page);
    await watched.page.getByLabel("API key").waitFor();
    await lookAt("key-form");
    await watched.page.getByLabel("API key").fill("wrong");
    await watched.page.keyboard.press("Enter");
    await watched.page.getByRole("alert").waitFor();
    await lookAt("key-wrong");
  });

  test("offline", async () => {
    await visit(empty, { name: "threads", path: () => "threads" });
    await empty.kill();
    await watched.page.getByText("The server cannot be reached").first().waitFor({ timeout: 20_000 });
    await lookAt("offline");
  });
});

async function visit(lab: Lab, stop: Stop): Promise<void> {
  const { page } = watched;
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${lab.page}${stop.path(tour)}`);
  await page.getByRole("main").waitFor();
  await settle(page);
  page.setDefaultTimeout(5_000);
  await stop.prepare?.(page);
  await settle(page);
}

async function settle(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const said = [...document.querySelectorAll("[role=status]")].map(({ textContent }) => textContent ?? "");
    return !said.some((text) => text.startsWith("Loading"));
  });
  await page.waitForTimeout(60);
}

/** Looks at what is on screen, in every theme and width, without leaving it. */
async function lookAt(name: string): Promise<void> {
  const { page } = watched;
  const found: Record<string, unknown> = {};
  for (const [theme, width] of LOOKS) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: width === PHONE ? 844 : 800 });
    await settle(page);
    if (folder) await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`) });
    const look = `${theme}, ${width} px`;
    found[`axe: ${look}`] = await watched.violations();
    found[`sideways: ${look}`] = await sidewaysScroll(page);
    found[`overlap: ${look}`] = await overlaps(page);
    found[`targets: ${look}`] = await smallTargets(page, TARGET);
    if (width === PHONE) found[`targets: ${look}, inbox`] = await smallTargets(page, FINGER, ".inbox");
  }
  found.zoom = await zoomed(page, name);
  found.rtl = await mirrored(page, name);
  if (folder) appendFileSync(join(folder, "problems.txt"), `${name} ${JSON.stringify(found, (_, v) => Array.isArray(v) && v.length === 0 ? undefined : v)}\n`);
  const problems = Object.entries(found).filter(([, list]) => (list as unknown[]).length > 0);
  expect(Object.fromEntries(problems), name).toEqual({});
}

/** A desktop at 200 %: half as many pixels of the page, each twice as large. */
async function zoomed(page: Page, name: string): Promise<string[]> {
  const client = await page.context().newCDPSession(page);
  const size = { width: 640, height: 400, deviceScaleFactor: 2, mobile: false };
  await client.send("Emulation.setDeviceMetricsOverride", size);
  await settle(page);
  if (folder) await page.screenshot({ path: join(folder, `${name}-zoom.png`) });
  const found = [...(await sidewaysScroll(page)), ...(await overlaps(page))];
  await client.send("Emulation.clearDeviceMetricsOverride");
  await client.detach();
  return found;
}

async function mirrored(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  await page.evaluate(() => document.documentElement.setAttribute("dir", "rtl"));
  for (const width of [1280, PHONE]) {
    await page.setViewportSize({ width, height: 800 });
    await settle(page);
    if (folder) await page.screenshot({ path: join(folder, `${name}-${width}-rtl.png`) });
    found.push(...(await sidewaysScroll(page)), ...(await overlaps(page)));
  }
  await page.evaluate(() => document.documentElement.removeAttribute("dir"));
  return found;
}
