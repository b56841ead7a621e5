/** Asks the worker for layouts. Where there is no worker, the page lays the graph out itself: slower, but the same. */

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
  isRefused = true;
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
  const { layoutGraph } = await import("../../../pure/graph_layout.ts");
  return layoutGraph(input);
}

export async function requestLayout(input: LayoutInput): Promise<GraphLayout> {
  if (isRefused) return inPage(input);
  try {
    return await inWorker(input);
  } catch (error) {
    giveUp(error);
    return inPage(input);
  }
}
