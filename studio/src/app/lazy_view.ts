import { type LazyExoticComponent, lazy, type ReactNode } from "react";

import { serverBase } from "../api/client.ts";

/** How often loading may fail although the server is there: then the file is gone, and waiting does not help. */
const FAILURES_MAX = 2;
const PAUSE_MS = 500;

/** A view whose code is loaded when it is needed. If the server is away at that moment, the view waits for it. */
export function lazyView<P>(
  load: () => Promise<{ default: (props: P) => ReactNode }>,
): LazyExoticComponent<(props: P) => ReactNode> {
  return lazy(() => loadPatiently(load));
}

async function loadPatiently<T>(load: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await load();
    } catch (error) {
      if (failures > FAILURES_MAX) throw error;
      await untilServerAnswers();
    }
  }
}

async function untilServerAnswers(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const isThere = await fetch(`${serverBase()}/ok`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isThere) return;
  }
}
