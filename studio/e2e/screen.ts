/** Reads back what the page shows of a thread: trees, differences, branches and traces, as values that can be compared. */

import type { Locator, Page } from "playwright-core";

import type { Json, JsonObject } from "../src/api/json.ts";

interface ShownRow {
  place: number;
  level: number;
  name: string;
  value: string;
  type: string;
  isChanged: boolean;
  labels: string[];
}

export interface ShownTree {
  value: Json;
  /** JSON Pointers to the rows that are marked as changed. */
  changed: string[];
  /** By JSON Pointer. */
  labels: Record<string, string[]>;
}

/** Opens everything in a tree and reads it. */
export async function readTree(tree: Locator): Promise<ShownTree> {
  return treeOf((await tree.evaluate(openAndRead)).rows);
}

function treeOf(rows: ShownRow[]): ShownTree {
  const shown: ShownTree = { value: null, changed: [], labels: {} };
  const [value, end] = readValue(rows, 0, "", shown);
  if (end !== rows.length) throw new Error(`${rows.length - end} rows of the tree are left over`);
  return { ...shown, value };
}

/** A difference as it is drawn: two texts as one, or the values side by side, each as a tree or as text. */
interface DrawnChange {
  kind: string;
  path: string;
  subgraph: string | undefined;
  words: { before: string; after: string } | undefined;
  sides: { rows: ShownRow[] | undefined; text: string }[];
}

/**
 * Runs in the page, so it is one function: opens every row and every long text of a tree or of a list of differences, and reads them,
 * also those that are only drawn while in view.
 */
async function openAndRead(
  root: HTMLElement | SVGElement,
): Promise<{ rows: ShownRow[]; changes: DrawnChange[] }> {
  const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const textOf = (element: Element | null | undefined) => element?.textContent ?? "";
  const without = (element: Element | null, names: string) => {
    const copy = element?.cloneNode(true) as Element | undefined;
    for (const each of copy?.querySelectorAll(names) ?? []) each.remove();
    return textOf(copy);
  };

  const cutTexts = (element: Element) => {
    const buttons = [...element.querySelectorAll<HTMLElement>(".json-more")];
    return buttons.filter((button) => textOf(button).startsWith("…"));
  };

  /** Scrolls through an element until nothing in it is left to open. */
  const scrollThrough = async (element: Element, read: () => Promise<boolean>) => {
    for (let round = 0; round < 200; round++) {
      let isOpened = false;
      for (let top = 0; ; top += 200) {
        element.scrollTop = top;
        await drawn();
        // A text that leaves the view is cut again, so it is read at once.
        for (let more = cutTexts(element); more.length > 0; more = cutTexts(element)) {
          for (const button of more) button.click();
          await drawn();
        }
        isOpened = (await read()) || isOpened;
        if (top + element.clientHeight >= element.scrollHeight) break;
      }
      if (!isOpened) return;
      await drawn();
    }
  };

  const rowOf = (row: HTMLElement): ShownRow => {
    const value = row.querySelector<HTMLElement>(".json-value");
    const type = value?.dataset.type ?? "page";
    const labels = [...row.querySelectorAll('.badge[data-tone="label"]')];
    return {
      place: Number(row.id.slice(row.id.lastIndexOf("-") + 1)),
      level: Number(row.ariaLevel),
      name: textOf(row.querySelector(".json-name")),
      value: textOf(type === "string" ? value?.querySelector("bdi") : value),
      type,
      isChanged: row.dataset.changed === "here",
      labels: labels.map(textOf),
    };
  };

  const readRows = async (tree: Element): Promise<ShownRow[]> => {
    const rows = new Map<number, ShownRow>();
    await scrollThrough(tree, async () => {
      const closed = [...tree.querySelectorAll<HTMLElement>('[role="treeitem"][aria-expanded="false"]')];
      for (const row of closed) row.click();
      // What opens moves the rows below.
      if (closed.length > 0) rows.clear();
      for (const element of tree.querySelectorAll<HTMLElement>('[role="treeitem"]')) {
        const row = rowOf(element);
        rows.set(row.place, row);
      }
      return closed.length > 0;
    });
    return [...rows.values()].sort((one, other) => one.place - other.place);
  };

  const changeOf = async (row: Element): Promise<DrawnChange> => {
    const words = row.querySelector(".change-text");
    const sides: DrawnChange["sides"] = [];
    for (const side of row.querySelectorAll(".change-values > div")) {
      const tree = side.querySelector('[role="tree"]');
      const rows = tree ? await readRows(tree) : undefined;
      sides.push({ rows, text: without(side.querySelector(".change-scalar"), "button") });
    }
    return {
      kind: textOf(row.querySelector(".badge")),
      path: textOf(row.querySelector(".change-path")),
      subgraph: row.querySelector('.badge[data-tone="accent"]')?.textContent ?? undefined,
      words: words
        ? { before: without(words, "ins, button"), after: without(words, "del, button") }
        : undefined,
      sides,
    };
  };

  if (root.role === "tree" || root.getAttribute("role") === "tree")
    return { rows: await readRows(root), changes: [] };
  const changes = new Map<number, DrawnChange>();
  await scrollThrough(root, async () => {
    const rows = [...root.querySelectorAll<HTMLElement>('[role="listitem"]')];
    for (const [at, row] of rows.entries()) {
      const place = Number(row.dataset.index ?? at);
      if (!changes.has(place)) changes.set(place, await changeOf(row));
    }
    return false;
  });
  return { rows: [], changes: [...changes.entries()].sort(([a], [b]) => a - b).map(([, change]) => change) };
}

/** Makes a value of the rows from a place on; returns it with the place after it. */
function readValue(rows: ShownRow[], at: number, pointer: string, shown: ShownTree): [Json, number] {
  const row = rows[at];
  if (!row) throw new Error("the tree ends too early");
  if (row.isChanged) shown.changed.push(pointer);
  if (row.labels.length > 0) shown.labels[pointer] = row.labels;
  if (row.type !== "closed") return [scalarOf(row), at + 1];
  const [, count, what] = /^([\d,]+) (item|field)s?/.exec(row.value) ?? [];
  const list: Json[] = [];
  const fields: JsonObject = {};
  let next = at + 1;
  for (let inner = rows[next]; inner && inner.level > row.level; inner = rows[next]) {
    const { name } = inner;
    // A page of a long list is not a value.
    if (inner.type === "page") {
      next += 1;
      continue;
    }
    const part = name.replaceAll("~", "~0").replaceAll("/", "~1");
    const [value, end] = readValue(rows, next, `${pointer}/${part}`, shown);
    if (what === "item") list.push(value);
    else fields[name] = value;
    next = end;
  }
  const found = what === "item" ? list : fields;
  if (Object.keys(found).length !== Number(count?.replaceAll(",", "")))
    throw new Error(`${pointer} says ${row.value} and shows ${Object.keys(found).length}`);
  return [found, next];
}

function scalarOf({ type, value }: ShownRow): Json {
  if (type === "string") return value;
  if (["number", "boolean", "null"].includes(type)) return JSON.parse(value) as Json;
  throw new Error(`a value of type ${type}`);
}

export interface ShownChange {
  path: string;
  subgraph?: string;
  before?: Json;
  after?: Json;
}

/** Reads a list of differences. */
export async function readChanges(list: Locator): Promise<ShownChange[]> {
  return (await list.evaluate(openAndRead)).changes.map(changeOf);
}

function changeOf({ kind, path, subgraph, words, sides }: DrawnChange): ShownChange {
  const change: ShownChange = { path };
  if (subgraph !== undefined) change.subgraph = subgraph.replace(/^in /, "");
  if (words) return { ...change, ...words };
  const names = { changed: ["before", "after"], added: ["after"], removed: ["before"] } as const;
  const shown: readonly ("before" | "after")[] = names[kind as keyof typeof names];
  if (sides.length !== shown.length) throw new Error(`${kind} at ${path} shows ${sides.length} values`);
  for (const [at, name] of shown.entries()) {
    const { rows, text = "" } = sides[at] ?? {};
    if (rows) change[name] = treeOf(rows).value;
    // Texts have quotes around them, so that "5" is not taken for 5.
    else change[name] = text.startsWith('"') ? text.slice(1, -1) : (JSON.parse(text) as Json);
  }
  return change;
}

export interface ShownBranch {
  depth: number;
  isCurrent: boolean;
  end: string;
  /** "Forked after step 3", or "From the beginning". */
  from: string;
  checkpoints: number;
}

export async function readBranches(page: Page): Promise<ShownBranch[]> {
  const rows = page.locator(".branch");
  await rows.first().waitFor();
  return await rows.evaluateAll((elements) =>
    elements.map((element) => {
      const row = element as HTMLElement;
      const badges = [...row.querySelectorAll(".badge")].map((badge) => badge.textContent ?? "");
      const isCurrent = badges[0] === "current";
      const [from, count] = (row.querySelector("p")?.textContent ?? "").split(" · ");
      return {
        depth: Math.round(Number.parseFloat(row.style.marginInlineStart || "0") / 1.5),
        isCurrent,
        end: badges[isCurrent ? 1 : 0] ?? "",
        from: from ?? "",
        checkpoints: Number.parseInt(count ?? "", 10),
      };
    }),
  );
}

export interface ShownNode {
  executions: number;
  /** How often the edges to other nodes were taken, by the names of these. */
  taken: Record<string, number>;
  isGroup: boolean;
}

/** Reads the nodes of the outline of the graph by their ids: those of the graph itself, or with all subgraphs open. */
export async function readOutline(page: Page, isOpen: boolean): Promise<Record<string, ShownNode>> {
  const graph = page.getByRole("region", { name: "Graph", exact: true });
  const items = graph.locator(".graph-item");
  await items.first().waitFor();
  // It is one button, which closes all if all are open. A graph without subgraphs has none.
  for (const name of ["Open all subgraphs", ...(isOpen ? [] : ["Close all subgraphs"])]) {
    const button = graph.getByRole("button", { name });
    if ((await button.count()) > 0) await button.click();
  }
  return await items.evaluateAll((elements) => {
    const nodes: Record<string, ShownNode> = {};
    for (const element of elements) {
      const id = element.querySelector<HTMLElement>(":scope > .graph-item-row [data-node]")?.dataset.node;
      const facts = element.querySelector(":scope > .graph-item-row > .graph-item-facts")?.textContent ?? "";
      const count = /([\d,]+) executions?/.exec(facts)?.[1] ?? "0";
      const taken: Record<string, number> = {};
      for (const edge of element.querySelectorAll(":scope > .graph-leads > span")) {
        const times = /taken ([\d,]+)×/.exec(edge.textContent ?? "")?.[1] ?? "0";
        taken[edge.querySelector("bdi")?.textContent ?? ""] = Number(times.replaceAll(",", ""));
      }
      const isGroup = element.querySelector(":scope > .graph-item-row > .graph-item-toggle") !== null;
      nodes[id ?? element.querySelector(".graph-item-name")?.textContent ?? ""] = {
        executions: Number(count.replaceAll(",", "")),
        taken,
        isGroup,
      };
    }
    return nodes;
  });
}

export interface ShownSpan {
  kind: string;
  name: string;
  toolClass: string;
  tokens: string;
  cost: string;
}

/** Opens the whole trace and reads its rows. */
export async function readTrace(page: Page): Promise<ShownSpan[]> {
  await page.getByRole("button", { name: "Expand all" }).click();
  return await page.locator(".trace-grid").evaluate(async (grid) => {
    const rows = new Map<number, ShownSpan>();
    for (let top = 0; ; top += 150) {
      grid.scrollTop = top;
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      for (const element of grid.querySelectorAll<HTMLElement>(".trace-rows > .trace-row")) {
        const cells = [...element.querySelectorAll(".trace-number")].map((cell) => cell.textContent ?? "");
        const badges = [...element.querySelectorAll(".badge")].map((badge) => badge.textContent ?? "");
        rows.set(Number(element.ariaRowIndex), {
          kind: element.dataset.kind ?? "",
          name: element.querySelector(".trace-label")?.textContent ?? "",
          toolClass: badges.find((text) => /^(read|idempotent|keyed|reconcilable|unsafe)$/.test(text)) ?? "",
          tokens: cells[1] ?? "",
          cost: cells[2] ?? "",
        });
      }
      if (top + grid.clientHeight >= grid.scrollHeight) break;
    }
    const announced = Number(grid.ariaRowCount) - 1;
    if (rows.size !== announced) throw new Error(`${rows.size} of ${announced} rows were drawn`);
    return [...rows.entries()].sort(([one], [other]) => one - other).map(([, row]) => row);
  });
}

/** What the dialog of a fork announces. */
export interface Announcement {
  /** Calls of tools by their class. */
  classes: Record<string, number>;
  /** Calls of models. */
  models: number;
  cost: string;
}

/** Reads the dialog as a visitor does: lines with a number and a class, and a line with the cost. */
export async function readAnnouncement(page: Page): Promise<Announcement> {
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Expected cost").waitFor();
  const classes: Record<string, number> = {};
  for (const line of await dialog.locator(".fork-lines li").allTextContents()) {
    const name = /Class: (\w+)/.exec(line)?.[1];
    if (name === undefined) continue;
    const number =
      /\b(\d+) (?:mails?|calls?|reads?|times)\b/.exec(line)?.[1] ?? (/\bonce\b/.test(line) ? "1" : undefined);
    if (number === undefined) throw new Error(`no number in "${line}"`);
    classes[name] = (classes[name] ?? 0) + Number(number);
  }
  const line = (await dialog.locator("p", { hasText: "Expected cost" }).textContent()) ?? "";
  const models = Number(/([\d,]+) model call/.exec(line)?.[1]?.replaceAll(",", "") ?? 0);
  return { classes, models, cost: /\$[\d.]+|cost unknown/.exec(line)?.[0] ?? "$0" };
}
