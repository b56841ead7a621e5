// The side of LangGraph in JavaScript: `side.mjs WORK STORE [name=value ...]`, then a round for every line.
// The lines it speaks are those of `bench/rounds`.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Command } from "@langchain/langgraph";
import { NODES, approval, beginning, chain, fanOut, loop } from "./graphs.mjs";
import { fresh } from "./savers.mjs";

const thread = () => ({ configurable: { thread_id: randomUUID() }, recursionLimit: 5000 });

/** Both clocks of a round: the wall's, and the processors' over all threads of this process. */
function stopwatch() {
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const elapsed = () => (performance.now() - begun) / 1e3;
  const stop = (units, times = []) => {
    const wall = elapsed();
    const spent = process.cpuUsage(cpu);
    return { units, wall_s: wall, cpu_s: (spent.user + spent.system) / 1e6, times_s: times };
  };
  return { elapsed, stop };
}

/** So many workers at once, each doing one chain after the other until the time is over. */
async function chains(kept, settings) {
  const graph = chain(kept.saver);
  const config = () => ({ ...thread(), ...(settings.durability && { durability: settings.durability }) });
  await graph.invoke(beginning(), config());
  const watch = stopwatch();
  const worker = async () => {
    let steps = 0;
    while (steps === 0 || watch.elapsed() < Number(settings.seconds)) {
      await graph.invoke(beginning(), config());
      steps += NODES;
    }
    return steps;
  };
  const done = await Promise.all(Array.from({ length: Number(settings.at_once) }, worker));
  return watch.stop(done.reduce((sum, steps) => sum + steps, 0));
}

async function turns(kept, settings) {
  const turns = Number(settings.turns);
  const graph = loop(kept.saver, turns);
  const empty = await kept.bytes();
  const watch = stopwatch();
  const state = await graph.invoke(beginning(), thread());
  const round = watch.stop(2 * turns);
  expect(state.messages.length, 2 * turns);
  return { ...round, bytes: (await kept.bytes()) - empty };
}

async function branches(kept, settings) {
  const branches = Number(settings.branches);
  const graph = fanOut(kept.saver, branches);
  const watch = stopwatch();
  const state = await graph.invoke({}, thread());
  const round = watch.stop(1);
  expect(state.total, branches);
  return round;
}

async function answers(kept, settings) {
  const graph = approval(kept.saver);
  const waiting = await park(graph, Number(settings.threads));
  const watch = stopwatch();
  const times = [];
  for (const parked of waiting) {
    const begun = performance.now();
    const state = await graph.invoke(new Command({ resume: "yes" }), parked);
    times.push((performance.now() - begun) / 1e3);
    expect(state.step, 3);
  }
  return watch.stop(times.length, times);
}

async function parked(kept, settings) {
  const graph = approval(kept.saver);
  const empty = await kept.bytes();
  const watch = stopwatch();
  const waiting = await park(graph, Number(settings.threads));
  const round = watch.stop(waiting.length);
  return { ...round, bytes: (await kept.bytes()) - empty };
}

/** Starts so many threads, each up to its question. */
async function park(graph, threads) {
  const waiting = Array.from({ length: threads }, thread);
  for (const parked of waiting) await graph.invoke(beginning(), parked);
  return waiting;
}

function expect(found, wanted) {
  if (found !== wanted) throw new Error(`${found} in place of ${wanted}`);
}

const WORKS = { chain: chains, loop: turns, fanout: branches, resume: answers, parked };
const [work, store, ...pairs] = process.argv.slice(2);
const settings = Object.fromEntries(pairs.map((pair) => pair.split("=")));
const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

say({ version: createRequire(import.meta.url)("@langchain/langgraph/package.json").version });
for await (const _ of createInterface({ input: process.stdin })) {
  const kept = await fresh(store, Number(settings.at_once));
  try {
    say(await WORKS[work](kept, settings));
  } finally {
    await kept.close();
  }
}
process.exit(0);
