/** Pages of `docs`, and two versions of a text: lines side by side, with the words that changed. */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";

export interface Piece {
  kind: "same" | "added" | "removed";
  text: string;
}

export interface DiffRow {
  /** A line of the older version; `undefined` if it has none here. */
  before: Piece[] | undefined;
  after: Piece[] | undefined;
  isChanged: boolean;
}

/** An edit script over items: how many stay, go and come. */
interface Hunk {
  same: number;
  removed: number;
  added: number;
}

/** So many differences are searched for. Beyond that, the rest counts as replaced: texts that differ so much have little in common. */
const DISTANCE_MAX = 1200;

/** Compares two versions line by line, and changed lines word by word. */
export function diffPages(before: string, after: string): DiffRow[] {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  const rows: DiffRow[] = [];
  let [i, j] = [0, 0];
  for (const hunk of compare(old, fresh)) {
    for (let n = 0; n < hunk.same; n++, i++, j++) {
      const piece: Piece[] = [{ kind: "same", text: old[i] ?? "" }];
      rows.push({ before: piece, after: piece, isChanged: false });
    }
    for (let n = 0; n < Math.max(hunk.removed, hunk.added); n++) {
      const [gone, come] = [
        n < hunk.removed ? old[i + n] : undefined,
        n < hunk.added ? fresh[j + n] : undefined,
      ];
      rows.push(changedRow(gone, come));
    }
    i += hunk.removed;
    j += hunk.added;
  }
  return rows;
}

function changedRow(gone: string | undefined, come: string | undefined): DiffRow {
  if (gone === undefined || come === undefined) {
    return {
      before: gone === undefined ? undefined : [{ kind: "removed", text: gone }],
      after: come === undefined ? undefined : [{ kind: "added", text: come }],
      isChanged: true,
    };
  }
  const pieces = diffWords(gone, come);
  return {
    before: pieces.filter(({ kind }) => kind !== "added"),
    after: pieces.filter(({ kind }) => kind !== "removed"),
    isChanged: true,
  };
}

/** Compares two texts word by word. */
export function diffWords(before: string, after: string): Piece[] {
  const [old, fresh] = [wordsOf(before), wordsOf(after)];
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  const put = (kind: Piece["kind"], words: string[]) => {
    if (words.length > 0) pieces.push({ kind, text: words.join("") });
  };
  for (const { same, removed, added } of compare(old, fresh)) {
    put("same", old.slice(i, i + same));
    put("removed", old.slice(i + same, i + same + removed));
    put("added", fresh.slice(j + same, j + same + added));
    i += same + removed;
    j += same + added;
  }
  return pieces;
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{M}\p{N}_]+|\s+|[^\p{L}\p{M}\p{N}_\s]/gu) ?? [];
}

/** Compares two lists by the algorithm of Myers, after their equal ends are set aside. */
function compare(old: string[], fresh: string[]): Hunk[] {
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head++;
  let tail = 0;
  const rest = Math.min(old.length, fresh.length) - head;
  while (tail < rest && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail++;
  const middle = shortest(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail));
  return joined([{ same: head, removed: 0, added: 0 }, ...middle, { same: tail, removed: 0, added: 0 }]);
}

function shortest(old: string[], fresh: string[]): Hunk[] {
  const [n, m] = [old.length, fresh.length];
  if (n === 0 || m === 0) return [{ same: 0, removed: n, added: m }];
  const max = Math.min(n + m, DISTANCE_MAX);
  const offset = max + 1;
  const reach = new Int32Array(2 * max + 3);
  const trail: Int32Array[] = [];
  for (let d = 0; d <= max; d++) {
    trail.push(reach.slice());
    for (let k = -d; k <= d; k += 2) {
      const at = offset + k;
      const [left, right] = [reach[at - 1] ?? 0, reach[at + 1] ?? 0];
      let x = k === -d || (k !== d && left < right) ? right : left + 1;
      while (x < n && x - k < m && old[x] === fresh[x - k]) x++;
      reach[at] = x;
      if (x >= n && x - k >= m) return walkBack(trail, d, k, { n, m, offset });
    }
  }
  return [{ same: 0, removed: n, added: m }];
}

/** Returns the way to the end that the search found. */
function walkBack(
  trail: Int32Array[],
  end: number,
  last: number,
  of: { n: number; m: number; offset: number },
): Hunk[] {
  const hunks: Hunk[] = [];
  let [x, y, k] = [of.n, of.m, last];
  for (let d = end; d > 0; d--) {
    const reach = trail[d] ?? new Int32Array();
    const at = of.offset + k;
    const [left, right] = [reach[at - 1] ?? 0, reach[at + 1] ?? 0];
    const isDown = k === -d || (k !== d && left < right);
    const from = isDown ? right : left;
    k += isDown ? 1 : -1;
    const start = isDown ? from : from + 1;
    hunks.push(
      { same: x - start, removed: 0, added: 0 },
      { same: 0, removed: isDown ? 0 : 1, added: isDown ? 1 : 0 },
    );
    [x, y] = [from, from - k];
  }
  hunks.push({ same: Math.min(x, y), removed: 0, added: 0 });
  return hunks.reverse();
}

/** Joins neighbours, so that each hunk is what stays and what replaces what. */
function joined(hunks: Hunk[]): Hunk[] {
  const all: Hunk[] = [];
  for (const hunk of hunks) {
    const last = all.at(-1);
    const isSame = hunk.same > 0;
    if (last && !isSame) {
      last.removed += hunk.removed;
      last.added += hunk.added;
    } else if (last && last.removed === 0 && last.added === 0) {
      last.same += hunk.same;
      last.removed += hunk.removed;
      last.added += hunk.added;
    } else all.push({ ...hunk });
  }
  return all;
}

/** Rows around changes; longer stretches without one become a gap. */
export type DiffBlock = { kind: "rows"; rows: DiffRow[] } | { kind: "gap"; rows: DiffRow[] };

export function foldRows(rows: DiffRow[], around = 3): DiffBlock[] {
  const isNear = new Array<boolean>(rows.length).fill(false);
  rows.forEach((row, at) => {
    if (!row.isChanged) return;
    isNear.fill(true, Math.max(0, at - around), Math.min(rows.length, at + around + 1));
  });
  const blocks: DiffBlock[] = [];
  rows.forEach((row, at) => {
    const kind = isNear[at] ? "rows" : "gap";
    const last = blocks.at(-1);
    if (last?.kind === kind) last.rows.push(row);
    else blocks.push({ kind, rows: [row] });
  });
  return blocks.map((block) =>
    block.kind === "gap" && block.rows.length < 4 ? { ...block, kind: "rows" } : block,
  );
}

/** A version of a page of `docs`. */
export interface PageVersion {
  iteration: number;
  /** `undefined` if the model did not score it. */
  score: number | undefined;
  text: string;
}

export interface PageScore {
  iteration: number;
  overall: number;
  /** The four scores that the overall one is the average of; the result of a finished page has none. */
  parts: { completeness: number; clarity: number; depth: number; accuracy: number } | undefined;
  misses: string[];
}

/** A page of `docs`: finished, or in the middle of its rounds. */
export interface DocsPage {
  agent: string;
  isFinished: boolean;
  isDegraded: boolean;
  summary: string;
  /** The whole page, if it is finished. */
  markdown: string;
  versions: PageVersion[];
  scores: PageScore[];
  threshold: number;
  questions: string[];
  missing: string[];
  warnings: string[];
  stopped: string;
}

/** What is read of a state: its values, and the states of the subgraphs that it is inside of. */
export interface NestedState {
  values?: unknown;
  tasks?: { state?: NestedState | null | undefined }[];
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const texts = (value: unknown): string[] => list(value).filter((item) => typeof item === "string");
const numberOf = (value: unknown, field: string): number => {
  const found = isObject(value) ? value[field] : undefined;
  return typeof found === "number" ? found : 0;
};

/** Returns the pages of a run: the finished ones, then those that are being written. */
export function docsPagesOf(state: NestedState): DocsPage[] {
  const pages = new Map<string, DocsPage>();
  const put = (page: DocsPage) => {
    if (!pages.has(page.agent)) pages.set(page.agent, page);
  };
  for (const result of list(isObject(state.values) ? state.values.results : [])) put(finishedPage(result));
  const visit = ({ values, tasks }: NestedState) => {
    if (isObject(values) && typeof values.agent === "string") put(openPage(values));
    for (const finished of list(isObject(values) ? values.finished : [])) {
      if (isObject(finished)) put(finishedPage(finished.result ?? null));
    }
    for (const task of tasks ?? []) if (task.state) visit(task.state);
  };
  visit(state);
  return [...pages.values()];
}

function finishedPage(result: Json): DocsPage {
  const metadata = isObject(result) && isObject(result.metadata) ? result.metadata : {};
  const versions = versionsOf(isObject(result) ? result.versions : []);
  const scores = list(metadata.scores).filter((score) => typeof score === "number");
  return {
    agent: textOf(result, "agentName") ?? "",
    isFinished: true,
    isDegraded: textOf(result, "status") === "degraded",
    summary: textOf(result, "summary") ?? "",
    markdown: textOf(result, "markdown") ?? "",
    versions,
    scores: scores.map((overall, iteration) => ({ iteration, overall, parts: undefined, misses: [] })),
    threshold: numberOf(metadata, "threshold"),
    questions: texts(metadata.selfQuestions),
    missing: texts(metadata.missingInformation),
    warnings: texts(isObject(result) ? result.warnings : []),
    stopped: textOf(metadata, "stopped") ?? "",
  };
}

function openPage(values: JsonObject): DocsPage {
  const current = textOf(values, "currentAnalysis") ?? "";
  const iteration = numberOf(values, "iteration");
  const versions = versionsOf(values.versions);
  // The newest text becomes a version when it is scored.
  if (current && versions.at(-1)?.text !== current)
    versions.push({ iteration, score: undefined, text: current });
  return {
    agent: textOf(values, "agent") ?? "",
    isFinished: false,
    isDegraded: typeof values.unscored === "string",
    summary: "",
    markdown: "",
    versions,
    scores: list(values.scores).map(scoreOf),
    threshold: numberOf(values.config, "clarityThreshold"),
    questions: texts(values.selfQuestions),
    missing: texts(values.missingInformation),
    warnings: texts(values.warnings),
    stopped: "",
  };
}

function versionsOf(value: unknown): PageVersion[] {
  return list(value).map((version) => ({
    iteration: numberOf(version, "iteration"),
    score: isObject(version) && version.is_unscored === true ? undefined : numberOf(version, "score"),
    text: textOf(version, "analysis") ?? "",
  }));
}

function scoreOf(scored: Json): PageScore {
  return {
    iteration: numberOf(scored, "iteration"),
    overall: numberOf(scored, "overall"),
    parts: {
      completeness: numberOf(scored, "completeness"),
      clarity: numberOf(scored, "clarity"),
      depth: numberOf(scored, "depth"),
      accuracy: numberOf(scored, "accuracy"),
    },
    misses: isObject(scored) ? texts(scored.misses) : [],
  };
}
