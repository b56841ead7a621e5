/** Asks the worker for layouts. Where there is no worker, the page lays the graph out itself: slower, but the same. */

import { loadPatiently, untilServerAnswers } from "../../../app/lazy_view.ts";
import type { GraphLayout, LayoutInput } from "../../../pure/graph_layout.ts";
import { startLayoutWorker } from "./worker_policy.ts";

type Answer = { id: number; layout: GraphLayout };

let worker: Worker | undefined;
let isRefused = false;
let lastId = 0;
const waiting = new Map<
  number,
  { resolve: (layout: GraphLayout) => void; reject: (error: unknown) => void }
>();

function giveUp(error: unknown): void {
  worker?.terminate();
  worker = undefined;
  for (const { reject } of waiting.values()) reject(error);
  waiting.clear();
}

function start(): Worker {
  const started = startLayoutWorker();
  started.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
    waiting.get(data.id)?.resolve(data.layout);
    waiting.delete(data.id);
  });
  started.addEventListener("error", giveUp);
  return started;
}

function inWorker(input: LayoutInput): Promise<GraphLayout> {
  return new Promise((resolve, reject) => {
    worker ??= start();
    const id = ++lastId;
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, input });
  });
}

async function inPage(input: LayoutInput): Promise<GraphLayout> {
  const { layoutGraph } = await loadPatiently(() => import("../../../pure/graph_layout.ts"));
  return layoutGraph(input);
}

/** The script of a worker may be lost with the server, and is then loaded again. More failures mean that there are no workers. */
const FAILURES_MAX = 2;

export async function requestLayout(input: LayoutInput): Promise<GraphLayout> {
  for (let failures = 0; failures < FAILURES_MAX && !isRefused; ) {
    try {
      return await inWorker(input);
    } catch (error) {
      failures += 1;
      giveUp(error);
      await untilServerAnswers();
    }
  }
  isRefused = true;
  return inPage(input);
}
