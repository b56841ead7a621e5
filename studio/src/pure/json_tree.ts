/** A JSON value as rows of a tree. Only what is open becomes rows, so a large value costs what is visible of it. */

import type { Json } from "../api/json.ts";

export { visibleText } from "./visible_text.ts";

/** Children of a value beyond this number are shown in pages, each a row that opens. */
export const PAGE_SIZE = 100;

interface RowPlace {
  /** Unique in the tree, and the same after the value changed around it. */
  id: string;
  /** Id of the row that it is inside of; `undefined` at the root. */
  parent: string | undefined;
  depth: number;
  /** Its place among its siblings, from 1. */
  position: number;
  siblings: number;
  isOpen: boolean;
}

/** A value. */
export interface ValueRow extends RowPlace {
  kind: "value";
  /** JSON Pointer to it. */
  pointer: string;
  /** The field or the index that leads to it; `undefined` at the root. */
  name: string | number | undefined;
  value: Json;
  /** The number of its children; `undefined` for what cannot open. */
  count: number | undefined;
}

/** A page of the children of a value. */
export interface PageRow extends RowPlace {
  kind: "page";
  /** JSON Pointer to the value whose children these are. */
  pointer: string;
  first: number;
  /** The first that is not in it. */
  end: number;
}

export type TreeRow = ValueRow | PageRow;

export function childPointer(pointer: string, name: string | number): string {
  if (typeof name === "number") return `${pointer}/${name}`;
  return `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Returns the parts of a JSON Pointer. */
export function pointerParts(pointer: string): string[] {
  if (pointer === "") return [];
  const parts = pointer.slice(1).split("/");
  return parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Returns a place in a state as people read it: `messages › 2 › content`. */
export function readablePath(pointer: string): string {
  return pointerParts(pointer).join(" › ");
}

/** Returns the pointers to the values around a value, the root first. */
export function pointersAround(pointer: string): string[] {
  const around: string[] = [];
  for (let at = pointer.indexOf("/"); at >= 0; at = pointer.indexOf("/", at + 1)) {
    around.push(pointer.slice(0, at));
  }
  return around;
}

export function valueAt(root: Json, pointer: string): Json | undefined {
  let value: Json | undefined = root;
  for (const part of pointerParts(pointer)) {
    if (typeof value !== "object" || value === null) return undefined;
    if (Array.isArray(value)) value = value[Number(part)];
    else value = Object.hasOwn(value, part) ? value[part] : undefined;
  }
  return value;
}

export const valueRowId = (pointer: string) => `v${pointer}`;
const pageRowId = (pointer: string, first: number, end: number) => `p${first}-${end}${pointer}`;

/** The names of the children of a value: fields, or nothing for a list, whose names are numbers. */
interface Children {
  count: number;
  nameAt: (at: number) => string | number;
  valueAt: (at: number) => Json;
}

function childrenOf(value: Json): Children | undefined {
  if (Array.isArray(value)) {
    return { count: value.length, nameAt: (at) => at, valueAt: (at) => value[at] ?? null };
  }
  if (typeof value !== "object" || value === null) return undefined;
  const names = Object.keys(value);
  return {
    count: names.length,
    nameAt: (at) => names[at] ?? "",
    valueAt: (at) => value[names[at] ?? ""] ?? null,
  };
}

export function countOf(value: Json): number | undefined {
  if (Array.isArray(value)) return value.length;
  return typeof value === "object" && value !== null ? Object.keys(value).length : undefined;
}

/** Returns how many children a page of so many has, so that there are at most 100 pages on each level. */
function pageSize(count: number): number {
  let size = 1;
  while (count > size * PAGE_SIZE) size *= PAGE_SIZE;
  return size;
}

/** Returns the rows of a value, given the ids of the rows that are open. */
export function treeRows(root: Json, open: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = [];
  const place = { pointer: "", name: undefined, parent: undefined, depth: 0, position: 1, siblings: 1 };
  addValue(rows, open, root, place);
  return rows;
}

type Place = Omit<ValueRow, "kind" | "id" | "value" | "count" | "isOpen">;

function addValue(rows: TreeRow[], open: ReadonlySet<string>, value: Json, place: Place): void {
  const count = countOf(value);
  const id = valueRowId(place.pointer);
  const isOpen = count !== undefined && open.has(id);
  rows.push({ kind: "value", id, value, count, isOpen, ...place });
  const children = isOpen ? childrenOf(value) : undefined;
  if (!children) return;
  addRange(rows, open, children, {
    pointer: place.pointer,
    parent: id,
    depth: place.depth + 1,
    first: 0,
    end: children.count,
  });
}

interface Range {
  pointer: string;
  parent: string;
  depth: number;
  first: number;
  end: number;
}

function addRange(rows: TreeRow[], open: ReadonlySet<string>, children: Children, range: Range): void {
  const { pointer, parent, depth } = range;
  const size = pageSize(range.end - range.first);
  const siblings = Math.ceil((range.end - range.first) / size);
  for (let position = 1; position <= siblings; position++) {
    const first = range.first + (position - 1) * size;
    const place = { pointer, parent, depth, position, siblings };
    if (size === 1) {
      const name = children.nameAt(first);
      addValue(rows, open, children.valueAt(first), {
        ...place,
        pointer: childPointer(pointer, name),
        name,
      });
      continue;
    }
    const end = Math.min(first + size, range.end);
    const id = pageRowId(pointer, first, end);
    const isOpen = open.has(id);
    rows.push({ kind: "page", id, first, end, isOpen, ...place });
    if (isOpen) addRange(rows, open, children, { pointer, parent: id, depth: depth + 1, first, end });
  }
}

/** Returns the ids of the rows that must be open for values to be visible. */
export function rowsAround(root: Json, pointers: Iterable<string>): Set<string> {
  const open = new Set<string>();
  // A changed list names hundreds of places inside of it: each value on the way is looked at once.
  const places = new Map<Json, Map<string, number>>();
  for (const pointer of pointers) openAround(root, pointerParts(pointer), open, places);
  return open;
}

function openAround(
  root: Json,
  parts: readonly string[],
  open: Set<string>,
  places: Map<Json, Map<string, number>>,
): void {
  let value: Json | undefined = root;
  let pointer = "";
  for (const part of parts) {
    const count: number | undefined = value === undefined ? undefined : countOf(value);
    if (value === undefined || value === null || typeof value !== "object" || count === undefined) return;
    open.add(valueRowId(pointer));
    const at: number = Array.isArray(value) ? Number(part) : placeOf(value, part, places);
    openPages(pointer, at, count, open);
    pointer = childPointer(pointer, part);
    value = Array.isArray(value) ? value[at] : Object.hasOwn(value, part) ? value[part] : undefined;
  }
}

function placeOf(value: { [field: string]: Json }, part: string, places: Map<Json, Map<string, number>>) {
  let known = places.get(value);
  if (!known) {
    known = new Map(Object.keys(value).map((name, at) => [name, at]));
    places.set(value, known);
  }
  return known.get(part) ?? 0;
}

function openPages(pointer: string, at: number, count: number, open: Set<string>): void {
  let [first, end] = [0, count];
  for (let size = pageSize(count); size > 1; size = pageSize(end - first)) {
    const start: number = first + Math.floor((at - first) / size) * size;
    [first, end] = [start, Math.min(start + size, end)];
    open.add(pageRowId(pointer, first, end));
  }
}

/** Returns the pointers to all values around those that are named. */
export function containersOf(pointers: Iterable<string>): Set<string> {
  const found = new Set<string>();
  for (const pointer of pointers) for (const around of pointersAround(pointer)) found.add(around);
  return found;
}

export interface SearchResult {
  /** Pointers to the values that match, in the order of the tree. */
  found: string[];
  /** Whether there are more. */
  isCut: boolean;
}

/** Finds the values whose field name or text contains a text, whatever its case. */
export function searchTree(root: Json, wanted: string, limit = 1000): SearchResult {
  const result: SearchResult = { found: [], isCut: false };
  const needle = wanted.trim().toLowerCase();
  if (needle) search(root, "", needle, false, limit, result);
  return result;
}

function search(
  value: Json,
  pointer: string,
  needle: string,
  nameMatches: boolean,
  limit: number,
  result: SearchResult,
): void {
  if (result.isCut) return;
  const isContainer = typeof value === "object" && value !== null;
  if (nameMatches || (!isContainer && String(value).toLowerCase().includes(needle))) {
    if (result.found.length === limit) {
      result.isCut = true;
      return;
    }
    result.found.push(pointer);
  }
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      search(value[at] ?? null, `${pointer}/${at}`, needle, false, limit, result);
    }
  } else if (isContainer) {
    for (const name of Object.keys(value)) {
      const isFound = name.toLowerCase().includes(needle);
      search(value[name] ?? null, childPointer(pointer, name), needle, isFound, limit, result);
    }
  }
}

/** Returns the beginning of a value on one line, without reading all of it. */
export function previewOf(value: Json, length = 80): string {
  const parts: string[] = [];
  let left = length;
  const add = (text: string) => {
    parts.push(text.slice(0, Math.max(0, left)));
    left -= text.length;
  };
  preview(value, add, () => left > 0);
  return left < 0 ? `${parts.join("")}…` : parts.join("");
}

function preview(value: Json, add: (text: string) => void, hasRoom: () => boolean): void {
  if (Array.isArray(value)) {
    add("[");
    for (const [at, item] of value.entries()) {
      if (!hasRoom()) break;
      if (at > 0) add(", ");
      preview(item, add, hasRoom);
    }
    add("]");
  } else if (typeof value === "object" && value !== null) {
    add("{");
    let isFirst = true;
    for (const name in value) {
      if (!hasRoom()) break;
      add(`${isFirst ? "" : ", "}${name}: `);
      preview(value[name] ?? null, add, hasRoom);
      isFirst = false;
    }
    add("}");
  } else {
    add(typeof value === "string" ? JSON.stringify(value.slice(0, 200)) : String(value));
  }
}
