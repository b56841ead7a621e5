/** The inbox as a list: its lines, which items belong together, and where the reader is when it changes. */

import { isObject } from "../api/json.ts";
import type { InboxItem } from "../api/types.ts";
import { inbox as text } from "../text/inbox.ts";

const SUBJECT_MAX = 160;

/** Returns one line that says what an item is about. It is text of others: short, and without line breaks. */
export function subjectOf(item: InboxItem): string {
  const { value } = item.interrupt;
  const asked = Array.isArray(value) ? value[0] : value;
  const subject = named(asked) ?? described(item.description) ?? acted(asked) ?? gated(asked) ?? other(asked);
  return oneLine(subject) || text.emptySubject;
}

/** The fields in which interrupts say in one sentence what they ask. */
function named(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!isObject(value)) return undefined;
  for (const field of ["summary", "question", "query", "message", "title"]) {
    const text = value[field];
    if (typeof text === "string" && text.trim() !== "") return text;
  }
  return undefined;
}

/** A description of a mail names its subject; other descriptions begin with what matters. */
function described(description: unknown): string | undefined {
  if (typeof description !== "string") return undefined;
  const lines = description.split("\n").map((line) => line.replace(/^[\s>#*-]+/, "").replaceAll("**", ""));
  const subject = lines.find((line) => /^subject: ./i.test(line));
  if (subject) return subject.replace(/^subject: /i, "");
  const written = lines.filter((line) => line.trim() !== "");
  // A line that ends with a colon only announces the next one.
  return written.find((line) => !line.trimEnd().endsWith(":")) ?? written[0];
}

function gated(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const { agent, iteration, maxIterations } = value;
  if (typeof agent !== "string" || typeof iteration !== "number" || typeof maxIterations !== "number")
    return undefined;
  return text.gate(agent, iteration, maxIterations);
}

function acted(value: unknown): string | undefined {
  const request = isObject(value) ? value.action_request : undefined;
  return isObject(request) && typeof request.action === "string" ? request.action : undefined;
}

function other(value: unknown): string {
  return JSON.stringify(value)?.slice(0, SUBJECT_MAX * 2) ?? "";
}

/** Shortens a text to one line. */
export function oneLine(text: string, longest = SUBJECT_MAX): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = [...line.slice(0, longest * 2)];
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : line;
}

/** Returns the name of the action that an item asks for; `undefined` if it asks something else. */
export function actionOf(item: InboxItem): string | undefined {
  return acted(item.interrupt.value);
}

/** Items with the same key can be approved together: the same action of the same node of the same graph. */
export function bulkKey(item: InboxItem): string | undefined {
  const action = actionOf(item);
  return action === undefined ? undefined : JSON.stringify([item.graph_id, item.node, item.kind, action]);
}

/** Returns the items of the thread of an item, in order. They are answered together. */
export function groupOf(items: Iterable<InboxItem>, thread: string): InboxItem[] {
  const group = new Map<string, InboxItem>();
  for (const item of items) if (item.thread_id === thread) group.set(item.interrupt.id, item);
  return [...group.values()];
}

/** A page of the inbox, which may be from another moment than the next one. */
export interface InboxPage {
  offset: number;
  items: readonly InboxItem[];
}

/** Returns the items by their place in the whole list. */
export function placed(pages: readonly InboxPage[]): Map<number, InboxItem> {
  const places = new Map<number, InboxItem>();
  const seen = new Set<string>();
  // An item that moved between two requests is shown once.
  for (const { offset, items } of pages) {
    items.forEach((item, at) => {
      if (!seen.has(item.interrupt.id)) places.set(offset + at, item);
      seen.add(item.interrupt.id);
    });
  }
  return places;
}

/** Where the reader is: an item, its place, and how far it is below the upper edge of the list. */
export interface ReadingPosition {
  id: string;
  place: number;
}

/**
 * Returns by how many rows the list has to be scrolled so that the item that is read stays where it is; 0 if it is gone,
 * because then there is nothing to keep in place.
 */
export function rowsMoved(
  before: ReadingPosition | undefined,
  after: ReadonlyMap<number, InboxItem>,
): number {
  if (!before || after.get(before.place)?.interrupt.id === before.id) return 0;
  for (const [place, item] of after) if (item.interrupt.id === before.id) return place - before.place;
  return 0;
}

/** Returns the items that were there and are no more. An item that moved to a page that is not loaded is not among them. */
export function departed(
  before: ReadonlyMap<number, InboxItem>,
  after: ReadonlyMap<number, InboxItem>,
  total: number,
): InboxItem[] {
  const ids = new Set([...after.values()].map((item) => item.interrupt.id));
  return [...before]
    .filter(([place, item]) => !ids.has(item.interrupt.id) && (after.has(place) || place >= total))
    .map(([, item]) => item);
}

/** Returns the item to read after one that left: the one that took its place, or the last. */
export function nextAfter(
  place: number,
  total: number,
  after: ReadonlyMap<number, InboxItem>,
): InboxItem | undefined {
  return after.get(Math.min(place, total - 1));
}

/** Returns the offsets of the pages that rows belong to. */
export function pageOffsets(first: number, last: number, size: number): number[] {
  const offsets: number[] = [];
  for (let offset = Math.floor(first / size) * size; offset <= last; offset += size) offsets.push(offset);
  return offsets;
}
