/** The address of the page is its state: whatever can be seen has an address that can be shared. */

import { useSyncExternalStore } from "react";

import { serverBase } from "../api/client.ts";

export interface PageLocation {
  /** The path below `/studio`, in parts: `["threads", "<id>"]`. */
  path: string[];
  query: URLSearchParams;
}

const listeners = new Set<() => void>();
let cached: { href: string; location: PageLocation } | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

function current(): PageLocation {
  if (cached?.href !== location.href) {
    const below = location.pathname.slice(`${serverBase()}/studio`.length);
    const path = below.split("/").filter(Boolean).map(decodeURIComponent);
    cached = { href: location.href, location: { path, query: new URLSearchParams(location.search) } };
  }
  return cached.location;
}

export function usePageLocation(): PageLocation {
  return useSyncExternalStore(subscribe, current);
}

/** Returns an address inside of the page. */
export function hrefOf(path: string[], query: Record<string, string | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) params.set(name, value);
  const text = params.toString();
  return `${serverBase()}/studio/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

export function navigate(href: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  for (const listener of listeners) listener();
}

/** Changes parts of the query and leaves the rest, without a new entry in the history. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { path, query } = current();
  const all: Record<string, string | undefined> = { ...Object.fromEntries(query), ...changes };
  navigate(hrefOf(path, all), "replace");
}
