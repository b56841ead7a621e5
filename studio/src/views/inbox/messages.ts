/** Messages about what happened by itself: who answered first, what left, what arrived. */

import { useSyncExternalStore } from "react";

export interface InboxMessage {
  id: number;
  text: string;
  tone: "plain" | "warn";
  /** The thread that it is about. */
  thread: string | undefined;
}

const MESSAGES_MAX = 4;
let messages: readonly InboxMessage[] = [];
let nextId = 0;
const listeners = new Set<() => void>();

function set(changed: readonly InboxMessage[]): void {
  messages = changed;
  for (const listener of listeners) listener();
}

export function showMessage(text: string, tone: InboxMessage["tone"] = "plain", thread?: string): void {
  if (messages.some((message) => message.text === text)) return;
  nextId += 1;
  set([...messages, { id: nextId, text, tone, thread }].slice(-MESSAGES_MAX));
}

let lastNote: number | undefined;

/** Says what became of a key that was pressed, in place of what the last such note said. */
export function showNote(text: string): void {
  const shown = messages.filter(({ id }) => id !== lastNote);
  nextId += 1;
  lastNote = nextId;
  set([...shown, { id: nextId, text, tone: "plain" as const, thread: undefined }].slice(-MESSAGES_MAX));
}

export function dismissMessage(id: number): void {
  set(messages.filter((message) => message.id !== id));
}

export function useMessages(): readonly InboxMessage[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => messages,
  );
}
