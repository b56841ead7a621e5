/** Memory of a page that watches a live thread: a model that writes 100 tokens per second. */

import type { Browser, CDPSession } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { openBrowser, WatchedPage } from "./browser.ts";
import { note } from "./figures.ts";
import { Lab, mailOf, pause } from "./lab.ts";
import { SlowModel } from "./slow_model.ts";

const SECONDS = Number(process.env.SECONDS ?? (process.env.LONG ? 3600 : 30));
const EVERY_S = Math.max(3, SECONDS / 40);
/** The page keeps a part of a text that never ends. Before it is full, the page may grow. */
const WARM_UP_S = process.env.LONG ? 120 : 6;
/** More is not noise of the measurement. */
const GROWTH_MAX_PER_HOUR = 16 * 1024 * 1024;

let browser: Browser;
let model: SlowModel;
let lab: Lab;

beforeAll(async () => {
  browser = await openBrowser();
  model = await SlowModel.start({ tokens: 2000, delayMs: 10 });
  lab = await Lab.start({ model: model.name, env: model.env });
});

afterAll(async () => {
  await browser?.close();
  await lab?.stop();
  model?.stop();
});

interface Sample {
  seconds: number;
  heap: number;
  nodes: number;
}

test(`memory ${process.env.LONG ? "is flat" : "stays small"} over ${SECONDS} seconds of 100 tokens per second`, {
  timeout: 3_900_000,
}, async () => {
  const thread = await lab.newThread();
  const watched = await WatchedPage.open(browser, `${lab.url}/studio/threads/${thread}?tab=messages`);
  const { page, context } = watched;
  const client = await context.newCDPSession(page);
  await client.send("HeapProfiler.enable");
  model.isHeld = true;
  const input = { email_input: mailOf("x") };
  await lab.call("POST", `/threads/${thread}/runs`, { assistant_id: "email_assistant", input });
  await page.getByText("being written").waitFor();
  const start = performance.now();
  const samples: Sample[] = [];
  for (let seconds = 0; seconds < SECONDS; ) {
    await pause(EVERY_S * 1000);
    seconds = (performance.now() - start) / 1000;
    samples.push({ seconds, ...(await measure(client)) });
  }
  // The page has kept up: the newest token is on screen.
  const text = await page.locator(".message").last().textContent();
  const shown = Number(/-(\d+)\s*$/.exec(text ?? "")?.[1]);
  expect(model.written - shown).toBeLessThan(200);
  const rate = model.written / ((performance.now() - start) / 1000);
  report(samples, rate);
  expect(rate).toBeGreaterThan(80);
  const perHour = slope(samples.filter(({ seconds }) => seconds >= WARM_UP_S)) * 3600;
  if (process.env.LONG) expect(perHour).toBeLessThan(GROWTH_MAX_PER_HOUR);
  // Half a minute is too short for a slope; what a text of this length takes is known.
  const largest = Math.max(...samples.map(({ heap }) => heap));
  expect(largest).toBeLessThan(60 * 1024 * 1024);
  note("live_memory", {
    seconds: SECONDS,
    tokens_per_second: rate,
    growth_mb_per_hour: perHour / 1024 / 1024,
    largest_heap_mb: largest / 1024 / 1024,
  });
  model.isHeld = false;
  await watched.close();
});

async function measure(client: CDPSession): Promise<{ heap: number; nodes: number }> {
  await client.send("HeapProfiler.collectGarbage");
  const { usedSize } = await client.send("Runtime.getHeapUsage");
  const { nodes } = await client.send("Memory.getDOMCounters");
  return { heap: usedSize, nodes };
}

/** Returns the growth in bytes per second: the slope of the line with the least squares. */
function slope(samples: Sample[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(samples.map(({ seconds }) => seconds));
  const y = mean(samples.map(({ heap }) => heap));
  const over = samples.reduce((sum, { seconds, heap }) => sum + (seconds - x) * (heap - y), 0);
  return over / samples.reduce((sum, { seconds }) => sum + (seconds - x) ** 2, 0);
}

function report(samples: Sample[], rate: number): void {
  const mb = (bytes: number) => (bytes / 1024 / 1024).toFixed(2);
  const late = samples.filter(({ seconds }) => seconds >= WARM_UP_S);
  console.log(
    [
      `${rate.toFixed(1)} tokens per second; after ${WARM_UP_S} s the heap grows by ${mb(slope(late) * 3600)} MB per hour`,
      ...samples.map(({ seconds, heap, nodes }) => `${seconds.toFixed()} s: ${mb(heap)} MB, ${nodes} nodes`),
    ].join("\n"),
  );
}
