/**
 * How fast the page is, in figures that hold on a busy machine: the time that its main thread computes, from the browser's own trace,
 * next to the time on the clock.
 */

import type { Browser, BrowserContext, CDPSession, Page } from "playwright-core";

import { pause } from "./lab.ts";

/** A network and a processor, as DevTools emulate them. */
export interface Conditions {
  /** In bits per second; `undefined` for all there is. */
  bandwidth?: number;
  latencyMs?: number;
  /** How many times slower the processor is. */
  slowdown?: number;
}

export interface Visit {
  /** When the first question or the notice that there is none was shown and could be focused, since the start of the visit. */
  usableMs: number;
  /** How long the main thread of the page computed until then, as slow as it is made: other programs do not count. */
  computedMs: number;
  /** What was loaded from below `/studio/`, by its path, not compressed. */
  loaded: Map<string, Buffer>;
  /** Requests to the API until then. */
  requests: string[];
}

/** Notes when something that matches can have the focus. */
const NOTE_USABLE = `(() => {
  const look = () => {
    const found = document.querySelector(".inbox-row a[href], .inbox .notice a[href]");
    if (!found || found.offsetParent === null) return requestAnimationFrame(look);
    globalThis.usableAt = performance.now();
  };
  requestAnimationFrame(look);
})()`;

/** Visits the page for the first time: with an empty cache. */
export async function visit(
  browser: Browser,
  url: string,
  conditions: Conditions = {},
  lateMs = 0,
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await emulate(session, conditions);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.addInitScript(NOTE_USABLE);
  const loaded = new Map<string, Buffer>();
  const requests: string[] = [];
  const bodies: Promise<void>[] = [];
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    if (!pathname.startsWith("/studio")) return void requests.push(pathname);
    bodies.push(
      response.body().then(
        (body) => void loaded.set(pathname, body),
        () => undefined,
      ),
    );
  });
  await page.goto(url, { waitUntil: "commit" });
  let usableMs: number | undefined;
  while (usableMs === undefined) {
    await pause(20);
    usableMs = await page.evaluate<number | undefined>("globalThis.usableAt");
  }
  const { metrics } = await session.send("Performance.getMetrics");
  const computed = metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
  // What is loaded late counts, too.
  await pause(lateMs);
  await Promise.all(bodies);
  await context.close();
  return { usableMs, computedMs: computed * 1000, loaded, requests };
}

async function emulate(
  session: CDPSession,
  { bandwidth, latencyMs = 0, slowdown }: Conditions,
): Promise<void> {
  const throughput = bandwidth === undefined ? -1 : bandwidth / 8;
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: latencyMs,
    downloadThroughput: throughput,
    uploadThroughput: throughput,
  });
  if (slowdown) await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
}

/** On a machine with more to do than this, a budget would hold whatever the page does. */
const CONTENTION_MAX = 2;

/**
 * Returns how many times longer than its own computing time a computation takes now, because other programs run: 1 if none do, and at
 * most 2, so that a budget that grows with it stays one.
 */
export function contention(): number {
  const [before, start] = [process.cpuUsage(), performance.now()];
  let sum = 0;
  while (process.cpuUsage(before).user < 60_000) sum += Math.sqrt(sum + 1);
  const { user, system } = process.cpuUsage(before);
  const times = ((performance.now() - start) * 1000) / (user + system);
  return Math.min(CONTENTION_MAX, Math.max(1, times));
}

export function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5);
}

export function quantile(numbers: readonly number[], part: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** How smoothly something ran. */
export interface Smoothness {
  frames: number;
  /** 95 of 100 frames cost the main thread at most this much computing time. */
  p95: number;
  /** The same on the clock: from one frame to the next, with pauses between gestures and whatever else the machine does. */
  p95Clock: number;
  /** The longest task of the main thread, in computing time and on the clock. */
  longest: number;
  longestClock: number;
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

/** Does something while the browser traces the page, and returns how smoothly it ran. */
export async function traced(browser: Browser, page: Page, action: () => Promise<void>): Promise<Smoothness> {
  await browser.startTracing(page, {
    categories: ["devtools.timeline", "devtools.timeline.frame", "disabled-by-default-devtools.timeline"],
  });
  await action();
  const buffer = await browser.stopTracing();
  const { traceEvents } = JSON.parse(buffer.toString()) as { traceEvents: TraceEvent[] };
  return smoothness(traceEvents);
}

function smoothness(events: readonly TraceEvent[]): Smoothness {
  const mains = new Set(
    events
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid}/${tid}`),
  );
  const own = events.filter(({ pid, tid }) => mains.has(`${pid}/${tid}`)).toSorted((a, b) => a.ts - b.ts);
  const tasks = own.filter(({ name, ph }) => ph === "X" && name === "RunTask");
  // What a frame costs is all that the main thread did since the one before.
  const costs: number[] = [];
  const ends: number[] = [];
  let cost = 0;
  for (const { name, ts, tdur = 0 } of own) {
    if (name === "RunTask") cost += tdur / 1000;
    if (name !== "BeginCommitCompositorFrame") continue;
    costs.push(cost);
    ends.push(ts / 1000);
    cost = 0;
  }
  const deltas = ends.map((end, at) => end - (ends[at - 1] ?? end));
  return {
    frames: costs.length,
    p95: quantile(costs, 0.95),
    p95Clock: quantile(deltas, 0.95),
    longest: Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur / 1000)),
    longestClock: Math.max(0, ...tasks.map(({ dur = 0 }) => dur / 1000)),
  };
}

/** Opens a page, with a script of the test in it. */
export async function openPage(
  browser: Browser,
  url: string,
  script = "",
): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  await page.addInitScript(script);
  await page.goto(url);
  return { context, page };
}
