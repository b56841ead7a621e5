/** Code that is loaded when it is needed, also if the server is away at that moment. */

import { type LazyExoticComponent, lazy, type ReactNode, useEffect } from "react";

import { hasJustAnswered, serverBase } from "../api/client.ts";

const PAUSE_MS = 500;

/** A view whose code is loaded when it is needed. If the server is away, the view waits for it. */
export function lazyView<P>(
  load: () => Promise<{ default: (props: P) => ReactNode }>,
): LazyExoticComponent<(props: P) => ReactNode> {
  return lazy(() => loadPatiently(load));
}

/** Loads a module once the server is there: browsers remember that a module could not be loaded, and do not try again. */
export async function loadPatiently<T>(load: () => Promise<T>): Promise<T> {
  if (!hasJustAnswered()) await untilServerAnswers();
  return await load();
}

/** Waits until the server is there. */
export async function untilServerAnswers(): Promise<void> {
  for (;;) {
    const isThere = await fetch(`${serverBase()}/ok`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Waits until what is drawn now is on screen. Tabs in the background draw nothing, so it does not wait long. */
export async function afterPaint(): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() =>
      setTimeout(() => {
        clearTimeout(timer);
        resolve();
      }),
    );
  });
}

/** Loads code that will be needed soon, once the view is ready and the browser has nothing else to do. */
export function useLoadedWhenIdle(isReady: boolean, load: () => Promise<unknown>): void {
  useEffect(() => {
    if (!isReady) return;
    // It is loaded again when it is needed, and a failure is shown there.
    const start = () => void loadPatiently(load).catch(() => undefined);
    // Safari has no idle callbacks.
    if (typeof requestIdleCallback === "undefined") {
      const timer = setTimeout(start, 200);
      return () => clearTimeout(timer);
    }
    const handle = requestIdleCallback(start, { timeout: 2000 });
    return () => cancelIdleCallback(handle);
  }, [isReady, load]);
}
