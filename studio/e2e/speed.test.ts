/** How much the first visit loads, and how soon the page can be used. Budgets: `scripts/bundle.mjs`. */

import { brotliCompressSync } from "node:zlib";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { openBrowser } from "./browser.ts";
import { note } from "./figures.ts";
import { begin, Lab } from "./lab.ts";
import { type Conditions, contention, median, visit } from "./measure.ts";

const FIRST_VIEW_BYTES = 92_000;
/** With everything that comes after the list. */
const QUESTION_BYTES = 150_000;
const VISITS = process.env.LONG ? 15 : 5;
const TAGS = ["a", "b", "c", "d", "e"];

let lab: Lab;
let browser: Browser;
beforeAll(async () => {
  [lab, browser] = await Promise.all([Lab.start({ tags: TAGS }), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await lab?.stop();
});

test("the list needs at most 92 KB in one round after the page itself, and a question at most 150 KB in all", async () => {
  await begin.mail(lab, "a");
  const { loaded, requests } = await visit(browser, lab.page, {}, 1000);
  const sizes = [...loaded].map(([path, body]) => [path, brotliCompressSync(body).length] as const);
  const total = (of: typeof sizes) => of.reduce((sum, [, size]) => sum + size, 0);
  // What the page names itself is there before the list; everything else comes after it.
  const page = loaded.get(new URL(lab.page).pathname)?.toString() ?? "";
  const first = sizes.filter(([path]) => path.endsWith("/") || page.includes(path.replace("/studio/", "./")));
  console.log(
    `first visit: ${total(first)} bytes of ${first.length} files, then ${total(sizes)} of ${sizes.length}`,
  );
  expect(total(first), JSON.stringify(sizes, null, 1)).toBeLessThanOrEqual(FIRST_VIEW_BYTES);
  // The page, its script, its style and its icon: what comes later would cost another round trip.
  expect(first.length).toBeGreaterThanOrEqual(3);
  expect(first.length).toBeLessThanOrEqual(4);
  expect(total(sizes), JSON.stringify(sizes, null, 1)).toBeLessThanOrEqual(QUESTION_BYTES);
  note("speed", { first_view_bytes: total(first), with_question_bytes: total(sizes) });
  expect(requests.slice(0, 2).sort()).toEqual(["/superstep/inbox", "/superstep/me"]);
});

test("an empty inbox and one with questions can be used within 500 ms", async () => {
  const empty = await Lab.start();
  try {
    await expectUsable("empty_loopback", empty.page, 500);
  } finally {
    await empty.stop();
  }
  for (const tag of TAGS.slice(1)) await begin.mail(lab, tag);
  await expectUsable("loopback", lab.page, 500);
});

test("the inbox can be used within 2 s on a slow network and a slow device", async () => {
  const slow = { bandwidth: 1_600_000, latencyMs: 150, slowdown: 4 };
  await expectUsable("slow", lab.page, 2000, slow);
});

/** Other programs on this machine must not decide: the budget grows by as much as they slow any computation down. */
async function expectUsable(name: string, url: string, budgetMs: number, conditions: Conditions = {}) {
  const times: number[] = [];
  const computed: number[] = [];
  const loads: number[] = [];
  for (let count = 0; count < VISITS; count += 1) {
    loads.push(contention());
    const { usableMs, computedMs } = await visit(browser, url, conditions);
    times.push(usableMs);
    computed.push(computedMs);
  }
  const load = median(loads);
  const shown = times.map(Math.round).join(", ");
  const figures = `median ${Math.round(median(times))} ms of ${shown}`;
  const other = `computed ${Math.round(median(computed))} ms, contention ${load.toFixed(2)}`;
  console.log(`usable (${name}): ${figures}; ${other}`);
  expect(median(times)).toBeLessThanOrEqual(budgetMs * load);
  note("speed", {
    [`${name}_usable_ms`]: median(times),
    [`${name}_computed_ms`]: median(computed),
    [`${name}_contention`]: load,
  });
}
