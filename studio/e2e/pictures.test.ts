/**
 * Pictures of every view, light and dark, on a desktop and on a phone, from the real program.
 *
 * They are compared with the sheets in `docs/images/studio`, on which each picture is small: that shows another layout, another
 * colour or a missing part, and not how a machine smooths its letters, how long a run took or which id it has. Lines end elsewhere
 * in another font, so the machine has to use the one of the sheets.
 * `UPDATE=1` writes the sheets and the pictures of the documentation again; `PICTURES=dir` writes all
 * pictures in full size, and compares nothing.
 */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, WatchedPage } from "./browser.ts";
import {
  crop,
  decodePng,
  differenceOf,
  encodeGif,
  encodePng,
  type Frame,
  type Picture,
  placeOnSheet,
  sheetOf,
  shrink,
} from "./images.ts";
import { type Scene, startScene, stopScene, VIEWS, type View } from "./pictures.ts";

const FOLDER = join(import.meta.dirname, "../../docs/images/studio");
const isUpdate = process.env.UPDATE === "1";
const folder = process.env.PICTURES;

const SIZES = {
  desktop: { width: 1280, height: 800, factor: 4, columns: 5 },
  phone: { width: 390, height: 844, factor: 3, columns: 12 },
} as const;
const THEMES = ["light", "dark"] as const;
/** Pictures that the documentation shows, with their theme. */
const SHOWN: Record<string, (typeof THEMES)[number]> = {
  inbox: "light",
  thread: "light",
  trace: "dark",
  fork: "light",
};
const TOLERANCE = 0.02;
/** How often a picture is taken before it counts as different: a busy machine draws late. */
const LOOKS = 8;
/** What Debian uses for `system-ui` if no other font is installed. */
const FONT = "DejaVu Sans";

type Size = keyof typeof SIZES;
type SheetName = `${Size}-${(typeof THEMES)[number]}`;

let browser: Browser;
let scene: Scene;
let watched: WatchedPage;
const taken = new Map<SheetName, Picture[]>();

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  [browser, scene] = await Promise.all([openBrowser(), startScene()]);
  watched = await WatchedPage.open(browser, scene.lab.page);
  for (const { page } of [scene.others.chats, scene.others.versions]) watched.allow(page);
  await watched.page.clock.setFixedTime(scene.now);
  await watched.page.locator("h1").waitFor();
  const advice = "install fonts-dejavu-core, or make it the font of `system-ui`";
  expect(await fontOf(watched, "h1"), advice).toBe(FONT);
});

afterAll(async () => {
  await watched?.close();
  await browser?.close();
  await stopScene(scene);
});

/** All four in the long test, and two that differ in everything otherwise. */
const VARIANTS: [Size, (typeof THEMES)[number]][] =
  isUpdate || folder || process.env.LONG
    ? [
        ["desktop", "light"],
        ["desktop", "dark"],
        ["phone", "light"],
        ["phone", "dark"],
      ]
    : [
        ["desktop", "light"],
        ["phone", "dark"],
      ];

describe("pictures", () => {
  test.each(VIEWS.map((view, at) => [view.name, view, at] as const))("%s", async (_, view, at) => {
    const { page } = watched;
    await page.setViewportSize(SIZES.desktop);
    await page.goto(`${view.page?.(scene) ?? scene.lab.page}${view.path(scene)}`);
    await settle(page);
    await view.prepare?.(page);
    for (const [size, theme] of VARIANTS) {
      await page.setViewportSize(SIZES[size]);
      await page.emulateMedia({ colorScheme: theme });
      await settle(page);
      await check(view, at, size, theme, page);
    }
  });

  test("sheets", () => {
    if (!isUpdate) return;
    for (const [name, pictures] of taken) {
      const { columns } = SIZES[name.split("-")[0] as Size];
      writeFileSync(join(FOLDER, `all-${name}.png`), encodePng(sheetOf(pictures, columns), 48));
    }
  });

  test("animations", async () => {
    if (isUpdate) {
      writeFileSync(join(FOLDER, "scrubber.gif"), encodeGif(await scrub(), 64));
      writeFileSync(join(FOLDER, "fork.gif"), encodeGif(await fork(), 64));
    }
    for (const name of ["scrubber.gif", "fork.gif"])
      expect(statSync(join(FOLDER, name)).size, name).toBeLessThan(600_000);
  });

  test("all of them are at most 3 MB", () => {
    const sizes = readdirSync(FOLDER).map((name) => statSync(join(FOLDER, name)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(3_000_000);
  });
});

async function frame(ms: number): Promise<Frame> {
  await settle(watched.page);
  return { picture: decodePng(await watched.page.screenshot()), ms };
}

/** Moves along the timeline of an answered mail, from its first checkpoint to the newest. */
async function scrub(): Promise<Frame[]> {
  const { page } = watched;
  await page.setViewportSize(SIZES.desktop);
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(`${scene.lab.page}threads/${scene.sent}?tab=agent`);
  await settle(page);
  const slider = page.getByRole("slider", { name: "Checkpoint" });
  await slider.press("Home");
  const frames = [await frame(1400)];
  const steps =
    Number(await slider.getAttribute("aria-valuemax")) - Number(await slider.getAttribute("aria-valuenow"));
  for (let step = 0; step < steps; step += 1) {
    await slider.press("ArrowRight");
    frames.push(await frame(step === steps - 1 ? 2500 : 1000));
  }
  return frames;
}

/** Forks where the mail waited, and sees the question again. */
async function fork(): Promise<Frame[]> {
  const { page } = watched;
  await page.goto(`${scene.lab.page}threads/${scene.sent}?tab=branches&checkpoint=${scene.asked}`);
  const frames = [await frame(1500)];
  await page.getByRole("button", { name: "Fork here" }).first().click();
  await page.getByText("Expected cost").waitFor();
  await page.getByRole("radio", { name: /The same again/ }).check();
  frames.push(await frame(2500));
  const confirm = page.getByRole("checkbox", { name: /second time/ });
  if (await confirm.isVisible()) {
    await confirm.check();
    frames.push(await frame(1200));
  }
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByText("waiting for an answer").first().waitFor();
  frames.push(await frame(1500));
  await page.getByRole("tab", { name: "Branches" }).click();
  frames.push(await frame(3000));
  return frames;
}

/** Waits until nothing is loaded any more, and two frames look the same. */
async function settle(page: Page): Promise<void> {
  await page.waitForTimeout(100);
  await page.waitForFunction(
    () =>
      ![...document.querySelectorAll("[role=status]")].some(({ textContent }) =>
        textContent?.startsWith("Loading"),
      ),
  );
  await page.waitForTimeout(150);
}

/** Returns the font with which the browser draws the first of these elements. */
async function fontOf({ context, page }: WatchedPage, selector: string): Promise<string | undefined> {
  const client = await context.newCDPSession(page);
  await client.send("DOM.enable");
  await client.send("CSS.enable");
  const { root } = await client.send("DOM.getDocument");
  const { nodeId } = await client.send("DOM.querySelector", { nodeId: root.nodeId, selector });
  const { fonts } = await client.send("CSS.getPlatformFontsForNode", { nodeId });
  await client.detach();
  return fonts[0]?.familyName;
}

async function check(
  view: View,
  at: number,
  size: Size,
  theme: (typeof THEMES)[number],
  page: Page,
): Promise<void> {
  const name: SheetName = `${size}-${theme}`;
  const picture = decodePng(await page.screenshot());
  if (folder) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${view.name}-${name}.png`), encodePng(picture));
    if (!isUpdate) return;
  }
  const { factor, columns } = SIZES[size];
  const small = shrink(picture, factor);
  taken.set(name, [...(taken.get(name) ?? []), small]);
  if (isUpdate) {
    if (size === "desktop" && SHOWN[view.name] === theme)
      writeFileSync(join(FOLDER, `${view.name}.png`), encodePng(picture));
    return;
  }
  const [x, y] = placeOnSheet(at, columns, small.width, small.height);
  const before = crop(sheet(name), x, y, small.width, small.height);
  const tolerance = view.tolerance ?? TOLERANCE;
  let difference = differenceOf(before, small);
  for (let look = 1; look < LOOKS && difference >= tolerance; look += 1) {
    await settle(page);
    difference = differenceOf(before, shrink(decodePng(await page.screenshot()), factor));
  }
  expect(difference, `${view.name}, ${name}: looks different`).toBeLessThan(tolerance);
}

const sheets = new Map<SheetName, Picture>();

function sheet(name: SheetName): Picture {
  const known = sheets.get(name) ?? decodePng(readFileSync(join(FOLDER, `all-${name}.png`)));
  sheets.set(name, known);
  return known;
}
