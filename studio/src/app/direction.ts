/** The direction of the page. Its texts are English; whoever reads everything else from right to left can turn it round. */

import { useSyncExternalStore } from "react";

export type Direction = "ltr" | "rtl";

export function storedDirection(): Direction {
  return localStorage.getItem("direction") === "rtl" ? "rtl" : "ltr";
}

export function setDirection(direction: Direction): void {
  localStorage.setItem("direction", direction);
  document.documentElement.dir = direction;
}

function shownDirection(): Direction {
  return document.documentElement.dir === "rtl" ? "rtl" : "ltr";
}

function watchDirection(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["dir"] });
  return () => observer.disconnect();
}

/** Returns the direction for parts that do not take it from the page. */
export function useDirection(): Direction {
  return useSyncExternalStore(watchDirection, shownDirection);
}
