/** Single keys that act on the inbox. They are off while somebody types, in dialogs, and if the visitor turned them off. */

import { useEffect, useRef, useSyncExternalStore } from "react";

const SETTING = "inbox-keys";
const listeners = new Set<() => void>();

export function areKeysOn(): boolean {
  return localStorage.getItem(SETTING) !== "off";
}

export function turnKeys(isOn: boolean): void {
  localStorage.setItem(SETTING, isOn ? "on" : "off");
  for (const listener of listeners) listener();
}

export function useKeysOn(): boolean {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, areKeysOn);
}

/** Calls the action of a key that is pressed. */
export function useKeys(actions: Readonly<Record<string, () => void>>): void {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = Object.hasOwn(latest.current, event.key) ? latest.current[event.key] : undefined;
      if (!action || !areKeysOn() || event.ctrlKey || event.metaKey || event.altKey || isTyping(event))
        return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function isTyping({ target, defaultPrevented, isComposing }: KeyboardEvent): boolean {
  if (defaultPrevented || isComposing || document.querySelector("dialog[open]")) return true;
  const element = target instanceof HTMLElement ? target : undefined;
  if (element?.isContentEditable) return true;
  // Trees, menus and lists search by typing.
  if (element?.closest("[role=tree], [role=menu], [role=listbox], [role=grid]")) return true;
  return element?.matches("input:not([type=checkbox], [type=radio]), textarea, select") ?? false;
}
