import type { StateDiff } from "../api/types.ts";

export function ChangeList(_: { changes: StateDiff["changes"] }) {
  return null;
}
