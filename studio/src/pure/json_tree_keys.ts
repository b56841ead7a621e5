/** What is open in a tree at first, and what its keys do. */

import type { Json } from "../api/json.ts";
import { countOf, rowsAround, type TreeRow, valueAt, valueRowId } from "./json_tree.ts";

/** Of more changes than this, the others are marked but not opened. */
const OPENED_MAX = 200;
/** A value with at most so many children is opened with the value around it. */
const SMALL = 6;

/** Returns the rows that are open at first: the changes, or the first level if nobody said what changed. */
export function initiallyOpen(
  value: Json,
  changed: ReadonlySet<string> | undefined,
  opensValues = true,
): Set<string> {
  const wanted = [...(changed ?? [])].slice(0, OPENED_MAX);
  const open = rowsAround(value, wanted);
  open.add(valueRowId(""));
  if (!opensValues) return open;
  for (const pointer of wanted) {
    const count = countOf(valueAt(value, pointer) ?? null);
    if (count !== undefined && (wanted.length <= SMALL || count <= SMALL)) open.add(valueRowId(pointer));
  }
  const count = countOf(value) ?? 0;
  if (changed === undefined && count <= SMALL) {
    const names = Array.isArray(value) ? [...value.keys()] : Object.keys(Object(value));
    for (const name of names) for (const id of childIds(value, name)) open.add(id);
  }
  return open;
}

function childIds(value: Json, name: string | number): string[] {
  const text = String(name).replaceAll("~", "~0").replaceAll("/", "~1");
  const inner = valueAt(value, `/${text}`);
  const count = inner === undefined ? undefined : countOf(inner);
  return count !== undefined && count <= SMALL ? [valueRowId(`/${text}`)] : [];
}

export interface KeyAction {
  /** The row to go to. */
  row: TreeRow;
  /** Whether it opens or closes. */
  toggle: boolean;
}

/** Returns what a key does at a place of a tree, as the ARIA practices have it; `undefined` for other keys. */
export function keyAction(key: string, rows: readonly TreeRow[], place: number): KeyAction | undefined {
  const here = rows[Math.max(0, place)];
  if (!here) return undefined;
  const go = (row: TreeRow | undefined): KeyAction => ({ row: row ?? here, toggle: false });
  const canOpen = here.kind === "page" || (here.count ?? 0) > 0;
  switch (key) {
    case "ArrowDown":
      return go(place < 0 ? here : rows[place + 1]);
    case "ArrowUp":
      return go(rows[place - 1]);
    case "Home":
      return go(rows[0]);
    case "End":
      return go(rows.at(-1));
    case "ArrowRight":
      return here.isOpen ? go(rows[place + 1]) : { row: here, toggle: canOpen };
    case "ArrowLeft":
      return here.isOpen ? { row: here, toggle: true } : go(rows.find((row) => row.id === here.parent));
    case "Enter":
    case " ":
      return { row: here, toggle: canOpen };
    default:
      return undefined;
  }
}
