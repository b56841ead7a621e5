import { useCallback, useState } from "react";

import type { Json } from "../../api/json.ts";

const PREFIX = "draft:";

/** Reads what was typed before the page was loaded. */
export function readDraft<T extends Json>(key: string, initial: T): T {
  try {
    const kept = sessionStorage.getItem(PREFIX + key);
    return kept === null ? initial : (JSON.parse(kept) as T);
  } catch {
    return initial;
  }
}

export function writeDraft(key: string, value: Json): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // The storage is full or switched off: the draft lives as long as the page.
  }
}

export function forgetDraft(key: string): void {
  try {
    sessionStorage.removeItem(PREFIX + key);
  } catch {
    // As above.
  }
}

/** State that survives a reload of the page, in this tab. A component whose key changes needs a new one, too. */
export function useDraft<T extends Json>(key: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState(() => readDraft(key, initial));
  const change = useCallback(
    (changed: T) => {
      setValue(changed);
      writeDraft(key, changed);
    },
    [key],
  );
  return [value, change];
}
