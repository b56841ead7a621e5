/** What was entered and not sent yet, by interrupt. It survives a refetch, another selection, an outage and a reload of the tab. */

import { useSyncExternalStore } from "react";

import type { Json } from "../../api/json.ts";
import type { AnswerWay } from "../../pure/answers.ts";

export interface PartDraft {
  /** The answer whose form is open, or that was decided on. */
  way: AnswerWay["id"] | undefined;
  /** What was entered, by answer. */
  entered: Readonly<Record<string, Json>>;
  /** Whether it is to be sent with the other answers of the thread. */
  isDecided: boolean;
}

/** The parts of an interrupt, by their place. */
export type Draft = Readonly<Record<number, PartDraft>>;

const KEY = "superstep.drafts";
const DRAFTS_MAX = 200;
const NONE: Draft = {};
const EMPTY: PartDraft = { way: undefined, entered: {}, isDecided: false };

const drafts = load();
const listeners = new Set<() => void>();
let saving: ReturnType<typeof setTimeout> | undefined;

function load(): Map<string, Draft> {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as [string, Draft][]);
  } catch {
    return new Map();
  }
}

function save(): void {
  clearTimeout(saving);
  saving = undefined;
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...drafts].slice(-DRAFTS_MAX)));
  } catch {
    // A full or forbidden storage: what was entered is still in memory.
  }
}

function changed(): void {
  saving ??= setTimeout(save, 200);
  for (const listener of listeners) listener();
}

globalThis.addEventListener?.("pagehide", save);

export function draftOf(interrupt: string): Draft {
  return drafts.get(interrupt) ?? NONE;
}

export function partOf(draft: Draft, part: number): PartDraft {
  return draft[part] ?? EMPTY;
}

export function changeDraft(interrupt: string, part: number, change: Partial<PartDraft>): void {
  const draft = draftOf(interrupt);
  drafts.delete(interrupt);
  drafts.set(interrupt, { ...draft, [part]: { ...partOf(draft, part), ...change } });
  changed();
}

export function enter(interrupt: string, part: number, way: string, value: Json): void {
  const { entered } = partOf(draftOf(interrupt), part);
  changeDraft(interrupt, part, { entered: { ...entered, [way]: value } });
}

export function forgetDraft(interrupt: string): void {
  if (drafts.delete(interrupt)) changed();
}

export function hasDraft(draft: Draft): boolean {
  return Object.values(draft).some(({ entered, isDecided }) => isDecided || Object.keys(entered).length > 0);
}

export function useDraft(interrupt: string): Draft {
  return useSyncExternalStore(subscribe, () => draftOf(interrupt));
}

/** Returns the drafts of several interrupts. The key changes with any of them. */
export function useDrafts(interrupts: readonly string[]): Draft[] {
  useSyncExternalStore(subscribe, version);
  return interrupts.map(draftOf);
}

let versions = 0;
listeners.add(() => {
  versions += 1;
});
const version = () => versions;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
