/** What the page shows of random threads equals an independent reading of their logs. `LONG=1` tries 200 of them, and CI two. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Thread } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import {
  branchesIn,
  callRows,
  costOf,
  labelsIn,
  pathTo,
  shownChanges,
  sorted,
  sortedRows,
  stateDifferences,
  writtenPointers,
} from "./expected.ts";
import { note } from "./figures.ts";
import { callsAfter, type ReadCheckpoint, type ReadLog, readLog, type StoredEntry } from "./log_reading.ts";
import { readAnnouncement, readBranches, readChanges, readOutline, readTrace, readTree } from "./screen.ts";
import { Random, SimulatedServer } from "./simulated.ts";

const THREADS = process.env.LONG ? 200 : 2;
/** The same seeds each time, so that a change is judged by what it changed. `SEED` begins with another one. */
const FIRST = Number(process.env.SEED ?? 1);
const SEEDS = Array.from({ length: THREADS }, (_, at) => ((FIRST - 1 + at) % 200) + 1);

/** Threads that the page showed as their logs have them. */
let compared = 0;
let server: SimulatedServer;
let browser: Browser;

beforeAll(async () => {
  server = await SimulatedServer.start();
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
  server?.stop();
});

/** Before anything is written, the channels that collect are shown as empty lists, as LangGraph's server does. */
const NOTHING_WRITTEN = { log: [], notes: [], facts: [] };

/** A thread with its log, and the ids by which the page names its checkpoints. */
interface Subject {
  thread: Thread;
  stored: StoredEntry[];
  log: ReadLog;
  idOf: (checkpoint: ReadCheckpoint) => string;
}

/** Makes a thread of the program of a seed. Another number makes other things happen on it. */
async function makeSubject(seed: number, happens = seed): Promise<Subject> {
  const id = await server.makeThread(seed, happens);
  const thread = await server.call<Thread>("GET", `/threads/${id}`);
  const stored = await server.log(id);
  const log = readLog(stored);
  const ids = new Map<string, string>();
  // The first six bytes of an id are the number of the entry, the eighth its place: 0 is before the input.
  const { checkpoints } = await server.call<{ checkpoints: { checkpoint_id: string }[] }>(
    "GET",
    `/superstep/threads/${id}/tree?limit=1000`,
  );
  for (const { checkpoint_id } of checkpoints) {
    const hex = checkpoint_id.replaceAll("-", "");
    ids.set(
      `${Number.parseInt(hex.slice(0, 12), 16)} ${Number.parseInt(hex.slice(14, 16), 16) === 0}`,
      checkpoint_id,
    );
  }
  const idOf = ({ seq, isBeforeInput }: ReadCheckpoint) => ids.get(`${seq} ${isBeforeInput}`) ?? "";
  expect(log.checkpoints.map(idOf).toSorted(), "the checkpoints of the log").toEqual(
    [...ids.values()].sort(),
  );
  return { thread, stored, log, idOf };
}

async function expectTimeline(
  page: Page,
  { log }: Pick<Subject, "log">,
  shown: ReadCheckpoint,
): Promise<void> {
  const branch = pathTo(log.current);
  const slider = page.getByRole("slider", { name: "Checkpoint" });
  await slider.waitFor();
  expect(Number(await slider.getAttribute("aria-valuemax"))).toBe(branch.length);
  const place = branch.indexOf(shown) + 1;
  const sources = { input: "before the input", loop: "superstep", update: "edited state", fork: "fork" };
  const end = shown.isBeforeInput ? "" : " · nothing left to run";
  const next = shown.next.length > 0 ? ` · next: ${shown.next.join(", ")}` : end;
  expect(await slider.getAttribute("aria-valuetext")).toContain(
    `${place} of ${branch.length} · ${sources[shown.source]}${next}`,
  );
  const marks = (await page.locator(".timeline-plain").getAttribute("d"))?.split("M").length ?? 0;
  expect(marks - 1).toBe(branch.length);
}

async function expectState(page: Page, { thread, log, idOf }: Subject, shown: ReadCheckpoint): Promise<void> {
  await page.goto(`${server.url}/studio/threads/${thread.thread_id}?tab=state&checkpoint=${idOf(shown)}`);
  const tree = page.getByRole("tree", { name: "State", exact: true });
  await tree.waitFor();
  const changes = stateDifferences(shown.parent, shown);
  await page
    .getByText(changes.length === 0 ? "This step changed nothing." : `${changes.length} change`)
    .first()
    .waitFor();
  await expectTimeline(page, { log }, shown);
  const read = await readTree(tree);
  expect(read.value).toEqual(Object.keys(shown.values).length === 0 ? NOTHING_WRITTEN : shown.values);
  expect(read.labels).toEqual(labelsIn(shown));
  expect(read.changed.toSorted()).toEqual(writtenPointers(changes));
  await page.getByRole("radio", { name: "Changes" }).check();
  if (changes.length === 0) await page.getByText("Nothing differs.").waitFor();
  else
    expect(sorted(await readChanges(page.getByRole("list", { name: "Changes" })))).toEqual(
      shownChanges(changes),
    );
}

/** The states of the subgraphs that the thread is inside of, below its own. */
async function expectSubgraphs(page: Page, { thread, log }: Subject): Promise<void> {
  await page.goto(`${server.url}/studio/threads/${thread.thread_id}?tab=state`);
  await page.getByRole("tree", { name: "State", exact: true }).waitFor();
  const shown = [];
  for (const tree of await page.getByRole("tree", { name: /^State of / }).all()) {
    const name = (await tree.getAttribute("aria-label"))?.replace(/^State of /, "").replace(/ #\d+$/, "");
    shown.push({ name, values: (await readTree(tree)).value });
  }
  const inOrder = (list: object[]) =>
    list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  expect(inOrder(shown)).toEqual(inOrder(log.open.map(({ name, values }) => ({ name, values }))));
}

async function expectComparison(
  page: Page,
  subject: Subject,
  from: ReadCheckpoint,
  to: ReadCheckpoint,
): Promise<void> {
  const { thread, idOf } = subject;
  await page.goto(
    `${server.url}/studio/threads/${thread.thread_id}?tab=compare&checkpoint=${idOf(to)}&compare=${idOf(from)}`,
  );
  const changes = stateDifferences(from, to);
  if (changes.length === 0) return await page.getByText("The two states are the same.").waitFor();
  const list = page.getByRole("list", { name: "Changes" });
  await list.waitFor();
  expect(sorted(await readChanges(list))).toEqual(shownChanges(changes));
}

async function expectLabelPath(page: Page, subject: Subject, shown: ReadCheckpoint): Promise<void> {
  const facts = (shown.values.facts ?? []) as { labels: string[]; value: string }[];
  const place = facts.findIndex(({ labels }) => labels.length > 0);
  const [fact, writer] = [facts[place], shown.writers[place]];
  if (!fact || !writer) return;
  await page.goto(
    `${server.url}/studio/threads/${subject.thread.thread_id}?tab=state&checkpoint=${subject.idOf(shown)}`,
  );
  await page.getByLabel("Search in the state").fill(fact.value);
  await page.getByRole("button", { name: "Next match" }).click();
  const tree = page.getByRole("tree", { name: "State", exact: true });
  await tree.getByRole("treeitem", { name: new RegExp(`^${place}: 2 fields.*labels: `) }).click();
  const path = (await page.locator(".label-path").textContent()) ?? "";
  expect(path).toContain(`Written by node ${writer.node}`);
  for (const label of fact.labels) expect(path).toContain(label);
}

async function expectBranches(page: Page, { thread, log }: Subject): Promise<void> {
  await page.goto(`${server.url}/studio/threads/${thread.thread_id}?tab=branches`);
  const endOf = (tip: ReadCheckpoint) => {
    if (tip === log.current && thread.status === "error") return "failed";
    if (tip === log.current && Object.keys(thread.interrupts ?? {}).length > 0) return "waits for an answer";
    return tip.next.length === 0 ? "finished" : `stopped before ${tip.next.join(", ")}`;
  };
  expect(await readBranches(page)).toEqual(branchesIn(log, endOf));
}

async function expectCosts(page: Page, { thread, log }: Subject): Promise<void> {
  await page.goto(`${server.url}/studio/threads/${thread.thread_id}?tab=trace`);
  const { cost, input, output, models } = costOf(log.calls);
  const header = page.locator(".thread-facts dd").first();
  await page.locator(".trace-grid").waitFor();
  const tokens = [input, output].map((each) => each.toLocaleString("en"));
  expect((await header.textContent()) ?? "").toContain(cost);
  if (models > 0) {
    for (const each of tokens) expect((await header.textContent()) ?? "").toContain(each);
    const total = (await page.locator(".trace-bar").textContent()) ?? "";
    expect(total).toContain(`All runs: ${tokens[0]} in, ${tokens[1]} out · ${cost}`);
  }
  const calls = (await readTrace(page)).filter(({ kind }) => kind === "model" || kind === "tool");
  expect(sortedRows(calls)).toEqual(callRows(log.calls));
}

/** The counts of the graph: how often each node ran, and which edges were taken. */
async function expectGraph(page: Page, { thread, log }: Subject): Promise<void> {
  await page.goto(`${server.url}/studio/threads/${thread.thread_id}?tab=state`);
  await page.getByRole("button", { name: "Outline" }).click();
  const { executions, followed, handled } = log.ran;
  const roots = await readOutline(page, false);
  const plain = Object.keys(roots).filter((id) => roots[id]?.isGroup === false);
  for (const from of plain) {
    for (const [to, shown] of Object.entries(roots[from]?.taken ?? {})) {
      const source = from === "Start" ? "__start__" : from;
      const edge = `${source} > ${to} of ${JSON.stringify(log.ran)}`;
      if (!plain.includes(to) || to === "End") continue;
      // A join runs later than right after its sources, and so does what is deferred: the page counts it when it runs.
      expect(shown, edge).toBeGreaterThanOrEqual(followed[`${source}>${to}`] ?? 0);
      const ends = (executions[to] ?? 0) + (log.pending.includes(to) ? 1 : 0);
      expect(shown, edge).toBeLessThanOrEqual(ends);
      if (source !== "__start__" && executions[source] === undefined) expect(shown, edge).toBe(0);
    }
  }
  const shown = Object.entries(await readOutline(page, true)).map(([id, node]): [string, number] => [
    id,
    node.executions,
  ]);
  // Attempts of what is not committed, and failures that a handler took, are on the page, and no result of them is in the log.
  const open = new Set([...log.pending, ...handled]);
  for (const [id, count] of shown) {
    if (open.has(id)) expect(count, id).toBeGreaterThanOrEqual(executions[id] ?? 0);
  }
  const settled = shown.filter(([id]) => !open.has(id) && id !== "Start" && id !== "End");
  const expected = settled.map(([id]): [string, number] => [id, executions[id] ?? 0]);
  expect(shown.length).toBeGreaterThan(0);
  expect(settled).toEqual(expected);
}

/** What the fork dialog announces is what the log has after the checkpoint, by class of tool, and what it cost. */
async function expectForkPreview(page: Page, subject: Subject, at: ReadCheckpoint): Promise<void> {
  const { thread, stored, idOf } = subject;
  await page.goto(`${server.url}/studio/threads/${thread.thread_id}?tab=state&checkpoint=${idOf(at)}`);
  await page.getByRole("button", { name: "Fork here" }).first().click();
  await page.getByRole("radio", { name: /^The same again/ }).check();
  const calls = callsAfter(stored, at.seq);
  const classes: Record<string, number> = {};
  for (const { kind, fields } of calls) {
    const name = String(fields["superstep.tool.class"]);
    if (kind === "tool") classes[name] = (classes[name] ?? 0) + 1;
  }
  const { models, cost } = costOf(calls);
  const announced = await readAnnouncement(page);
  expect(announced.classes).toEqual(classes);
  expect(announced.models).toBe(models);
  if (models > 0) expect(announced.cost).toBe(cost.replace("at least ", ""));
}

/** Another thread of the same program, compared with this one. */
async function expectOtherThread(page: Page, subject: Subject, other: Subject): Promise<void> {
  const [to, from] = [subject.log.current, other.log.current];
  const compared = `${other.thread.thread_id}:`;
  await page.goto(
    `${server.url}/studio/threads/${subject.thread.thread_id}?tab=compare&checkpoint=${subject.idOf(to)}&compare=${compared}`,
  );
  const changes = stateDifferences(from, to);
  if (changes.length === 0) return await page.getByText("The two states are the same.").waitFor();
  const list = page.getByRole("list", { name: "Changes" });
  await list.waitFor();
  expect(sorted(await readChanges(list))).toEqual(shownChanges(changes));
}

test.each(SEEDS)(
  "the page shows the thread of program %i as its log has it",
  async (seed) => {
    const subject = await makeSubject(seed);
    const random = new Random(seed + 1000);
    const { checkpoints, current } = subject.log;
    const branch = pathTo(current);
    const watched = await WatchedPage.open(
      browser,
      `${server.url}/studio/threads/${subject.thread.thread_id}`,
    );
    const { page } = watched;
    await expectState(page, subject, current);
    await expectState(page, subject, random.pick(branch));
    await expectSubgraphs(page, subject);
    await expectComparison(page, subject, random.pick(checkpoints), random.pick(checkpoints));
    await expectComparison(page, subject, random.pick(checkpoints), current);
    await expectOtherThread(page, subject, await makeSubject(seed, random.below(1000)));
    const running = branch.filter(({ isBeforeInput, next }) => !isBeforeInput && next.length > 0);
    if (running.length > 0) await expectForkPreview(page, subject, random.pick(running));
    await expectLabelPath(page, subject, current);
    await expectGraph(page, subject);
    await expectBranches(page, subject);
    await expectCosts(page, subject);
    await watched.close();
    note("truth", { threads: ++compared });
  },
  120_000,
);
