import type { Json } from "../api/json.ts";

export interface JsonTreeProps {
  /** Names the tree for screen readers. */
  name: string;
  value: Json;
  /** JSON Pointers that are open at first and marked as changed. */
  changed?: ReadonlySet<string>;
  /** Labels by JSON Pointer. */
  labels?: ReadonlyMap<string, readonly string[]>;
}

export function JsonTree(_: JsonTreeProps) {
  return null;
}
