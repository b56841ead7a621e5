import type { Json } from "../api/json.ts";

/** Returns about how many characters a value has as JSON, but does not count beyond a limit. */
export function weightOf(value: Json, limit: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 4;
  let weight = 2;
  for (const name in value) {
    if (weight > limit) break;
    const inner = (value as { [field: string]: Json })[name] ?? null;
    weight += name.length + 4 + weightOf(inner, limit - weight);
  }
  return weight;
}
