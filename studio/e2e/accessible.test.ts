/**
 * The page for everyone: every view in both themes and at three widths, at 200 % zoom and from right to left, with targets that
 * can be hit and a focus that can be seen.
 *
 * By default some views are looked at, in light at 1280 px or in dark at 390 px, as CI has time for; `LONG=1` looks at every view
 * in all six combinations and presses Tab through each. `SCREENSHOTS=dir` writes a picture of every view, in the two looks.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, WatchedPage } from "./browser.ts";
import { note } from "./figures.ts";
import { Lab } from "./lab.ts";
import { overlaps, sidewaysScroll, smallTargets, unseenFocus } from "./layout.ts";
import { stopScene } from "./pictures.ts";
import { EMPTY, STOPS, type Stop, startTour, type Tour } from "./tour.ts";

const isLong = process.env.LONG === "1";
const folder = process.env.SCREENSHOTS;
const isWhole = isLong || folder !== undefined;

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

/** Views that together have every kind of part: a form, a tree, a dialog, a conversation with a question, and tables side by side. */
const SOME = new Set(["inbox-edit", "state", "fork-edit", "chat-question", "versions"]);
/** The one of them in which Tab is pressed. */
const TABBED = "fork-edit";
const stops = (list: readonly Stop[]) => list.map((stop, at) => [stop.name, stop, at] as const);

/** Views in which nothing was found. */
let clean = 0;
let browser: Browser;
let tour: Tour;
let empty: Lab | undefined;
let locked: Lab | undefined;
let watched: WatchedPage;

beforeAll(async () => {
  browser = await openBrowser();
  tour = await startTour();
  if (isWhole) {
    empty = await Lab.start();
    locked = await Lab.start({ people: { alice: "read,run,answer,edit,admin" } });
  }
  watched = await WatchedPage.open(browser, tour.lab.page);
  if (folder) mkdirSync(folder, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  await stopScene(tour);
  for (const lab of [empty, locked]) await lab?.stop();
});

describe("every view is accessible, small and large, in both directions", () => {
  const shown = stops(isWhole ? STOPS : STOPS.filter(({ name }) => SOME.has(name)));

  test.each(shown)("%s", async (_, stop, at) => {
    await visit(tour.lab, stop);
    const look = LOOKS[at % LOOKS.length];
    await lookAt(stop.name, isWhole || !look ? LOOKS : [look]);
  });

  test("there are such views", () => {
    const names = STOPS.map(({ name }) => name);
    expect([...SOME, TABBED].filter((name) => !names.includes(name))).toEqual([]);
  });
});

describe.runIf(isWhole)("so is a server that has nothing, that asks for a key, or that is gone", () => {
  test.each(stops(EMPTY))("%s", async (_, stop) => {
    if (empty) await visit(empty, stop);
    await lookAt(stop.name);
  });

  test("key form, and keys", async () => {
    const { page } = watched;
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${locked?.page}keys`);
    const field = page.getByLabel("API key");
    await field.waitFor();
    await lookAt("key-form");
    await field.fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await lookAt("key-wrong");
    await field.fill(locked?.keys.get("alice") ?? "");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New key" }).waitFor();
    await lookAt("keys-some");
    await page.getByRole("button", { name: "New key" }).click();
    await lookAt("key-new");
  });

  test("offline", async () => {
    if (empty) await visit(empty, { name: "threads", path: () => "threads" });
    await empty?.kill();
    await watched.page.getByText("The server cannot be reached").first().waitFor({ timeout: 20_000 });
    await lookAt("offline");
  });
});

describe("with the keyboard, without motion, and without a drawing", () => {
  // In another tab, which has none of the drafts of the first.
  beforeAll(async () => {
    await watched.context.close();
    watched = await WatchedPage.open(browser, tour.lab.page);
  });

  const tabbed = stops(STOPS.filter(({ name }) => isLong || name === TABBED));

  test.each(tabbed)("the focus is seen: %s", async (_, stop) => {
    await visit(tour.lab, stop);
    expect(await unseenFocus(watched.page)).toEqual([]);
  });

  test("the checks find what they look for", async () => {
    const { page } = watched;
    await visit(tour.lab, { name: "crons", path: () => "crons" });
    await page.evaluate(() => {
      const change = (query: string, styles: Record<string, string>) => {
        const element = document.querySelector<HTMLElement>(query);
        for (const [name, value] of Object.entries(styles)) element?.style.setProperty(name, value);
      };
      change("main h1", { "min-width": "200vw", color: "color-mix(in srgb, currentColor 20%, transparent)" });
      change("main select", { outline: "none" });
      change("main a.button", { "min-block-size": "0", height: "20px" });
      change("main td .button + .button", { "margin-inline-start": "-3rem" });
    });
    expect(await sidewaysScroll(page)).not.toEqual([]);
    expect(await overlaps(page)).not.toEqual([]);
    expect(await smallTargets(page, TARGET)).not.toEqual([]);
    expect(await unseenFocus(page)).not.toEqual([]);
    expect(await watched.violations()).not.toEqual([]);
  });

  test("the first Tab leads past the navigation", async () => {
    const { page } = watched;
    await visit(tour.lab, { name: "crons", path: () => "crons" });
    await page.keyboard.press("Tab");
    const skip = page.getByRole("link", { name: "Skip to content" });
    expect((await skip.boundingBox())?.height).toBeGreaterThan(TARGET);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.closest("main") !== null)).toBe(true);
  });

  test("nothing moves for those who asked for less motion", async () => {
    const { page } = watched;
    const moving = () => page.evaluate(() => document.getAnimations().length);
    await visit(tour.lab, { name: "running", path: ({ running }) => `threads/${running}?tab=graph` });
    expect(await moving()).toBe(0);
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await expect.poll(moving, { timeout: 10_000 }).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: "reduce" });
  });

  test("the outline has every node of the drawing", async () => {
    const { page } = watched;
    await visit(tour.lab, { name: "graph", path: ({ sent }) => `threads/${sent}` });
    await page.getByRole("button", { name: "Show all" }).click();
    const graph = page.getByRole("region", { name: "Graph" }).first();
    const nodes = async () =>
      (
        await graph
          .locator("button[data-node]")
          .evaluateAll((all) => all.map((each) => each.getAttribute("data-node")))
      ).sort();
    const drawn = await nodes();
    await page.getByRole("button", { name: "Outline" }).click();
    expect(drawn.length).toBeGreaterThan(3);
    expect(await nodes()).toEqual(drawn);
    await graph.getByRole("listitem").getByRole("button", { name: "llm_call" }).first().press("Enter");
    await page.getByRole("region", { name: "llm_call" }).getByRole("table").waitFor();
  });

  test("the direction is a setting that stays", async () => {
    const { page } = watched;
    const direction = () => page.evaluate(() => getComputedStyle(document.body).direction);
    const choose = async (words: string) => {
      await page.keyboard.press("Control+k");
      await page.keyboard.type(words);
      await page.getByRole("option", { name: words }).waitFor();
      await page.keyboard.press("Enter");
    };
    await visit(tour.lab, { name: "threads", path: () => "threads" });
    await choose("right-to-left");
    expect(await direction()).toBe("rtl");
    await page.reload();
    await page.getByRole("heading", { name: "Threads" }).waitFor();
    expect(await direction()).toBe("rtl");
    await choose("left-to-right");
    expect(await direction()).toBe("ltr");
  });
});

async function visit(lab: Lab, stop: Stop): Promise<void> {
  const { page } = watched;
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${stop.page?.(tour) ?? lab.page}${stop.path(tour)}`);
  await page.getByRole("main").waitFor();
  await settle(page);
  page.setDefaultTimeout(15_000);
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

/** Looks at what is on screen, in themes and widths, without leaving it. */
async function lookAt(name: string, looks: readonly Look[] = LOOKS): Promise<void> {
  const { page } = watched;
  const found: Record<string, unknown> = {};
  for (const [theme, width] of looks) {
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
  const problems = Object.entries(found).filter(([, list]) => (list as unknown[]).length > 0);
  expect(Object.fromEntries(problems), name).toEqual({});
  note("accessible", { views: ++clean, looks_of_each: looks.length });
}

/** A desktop at 200 %: half as many pixels of the page, each twice as large. */
async function zoomed(page: Page, name: string): Promise<string[]> {
  await page.setViewportSize({ width: 640, height: 400 });
  await settle(page);
  if (folder) await page.screenshot({ path: join(folder, `${name}-zoom.png`) });
  return [...(await sidewaysScroll(page)), ...(await overlaps(page))];
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
  await page.evaluate(() => document.documentElement.setAttribute("dir", "ltr"));
  return found;
}
