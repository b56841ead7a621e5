/** The claims of `analyze` and the lines of the notes that they cite. */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";

export const SECTIONS = ["assumptions", "components", "alternatives", "decisions", "questions"] as const;
export type SectionName = (typeof SECTIONS)[number];

/** What the check of a citation found. `said`: it cites no note, but comes from the conversation. */
export type Verdict = "supported" | "weak" | "unsupported" | "misquoted" | "said";

export interface Source {
  file: string;
  line: number;
  quote: string;
}

export interface Claim {
  section: string;
  text: string;
  source: Source | undefined;
  verdict: Verdict;
  /** Whether the quotation is in another line than the model said. */
  isMoved: boolean;
  contradicts: string;
}

export interface Turn {
  role: "user" | "agent";
  text: string;
}

export interface Analysis {
  query: string;
  turns: Turn[];
  question: string;
  claims: Claim[];
  /** Why sections are missing or incomplete. */
  gaps: Map<string, string>;
  degraded: string;
  stopped: string;
  notes: Map<string, string>;
  skipped: { name: string; why: string }[];
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

export function analysisOf(values: unknown): Analysis {
  const state: JsonObject = isObject(values) ? values : {};
  const turns = list(state.analysisHistory).map(
    (turn): Turn => ({
      role: textOf(turn, "role") === "agent" ? "agent" : "user",
      text: textOf(turn, "content") ?? "",
    }),
  );
  const query = turns.find(({ role }) => role === "user")?.text ?? textOf(state, "userInput") ?? "";
  return {
    query: query.replace(/^analyze: ?/, ""),
    turns,
    question: textOf(state, "currentAnalysisQuery") ?? "",
    claims: list(state.findings).map(claimOf),
    gaps: gapsOf(state.gaps),
    degraded: textOf(state, "degraded") ?? "",
    stopped: textOf(state, "stopped") ?? "",
    notes: notesOf(state),
    skipped: list(isObject(state.inputs) ? state.inputs.skipped : []).map((entry) => ({
      name: textOf(entry, "name") ?? "",
      why: textOf(entry, "why") ?? "",
    })),
  };
}

/** Returns the notes that claims can cite: the files, and the memory under its name. */
export function notesOf(values: unknown): Map<string, string> {
  const contents = isObject(values) && isObject(values.fileContents) ? values.fileContents : {};
  const notes = Object.entries(contents).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const memory = textOf(values, "memory");
  return new Map(memory ? [...notes, ["memory", memory]] : notes);
}

function claimOf(finding: Json): Claim {
  const from = isObject(finding) ? finding.source : undefined;
  const line = isObject(from) && typeof from.line === "number" ? from.line : 0;
  const source = isObject(from) && {
    file: textOf(from, "file") ?? "",
    line,
    quote: textOf(from, "quote") ?? "",
  };
  return {
    section: textOf(finding, "section") ?? "",
    text: textOf(finding, "claim") ?? "",
    source: source || undefined,
    verdict: verdictOf(textOf(finding, "support"), textOf(finding, "evidence")),
    isMoved: textOf(finding, "support") === "moved",
    contradicts: textOf(finding, "contradicts") ?? "",
  };
}

function verdictOf(support: string | undefined, evidence: string | undefined): Verdict {
  if (support === "said") return "said";
  if (support !== "quoted" && support !== "moved") return "misquoted";
  return evidence === "weak" || evidence === "unsupported" ? evidence : "supported";
}

function gapsOf(gaps: unknown): Map<string, string> {
  const all = isObject(gaps) ? Object.entries(gaps) : [];
  return new Map(
    all.map(([section, gap]) => {
      const missing = isObject(gap) ? textOf(gap.missing, "why") : undefined;
      return [section, missing ?? ""];
    }),
  );
}

/** Lines of a note around the one that is cited. */
export interface Excerpt {
  file: string;
  lines: { number: number; text: string; isCited: boolean }[];
}

/** Returns the cited line with its neighbours; `undefined` if the note has no such line. */
export function excerptOf(
  notes: ReadonlyMap<string, string>,
  file: string,
  line: number,
  around = 1,
): Excerpt | undefined {
  const lines = notes.get(file)?.split("\n");
  if (!lines || line < 1 || line > lines.length) return undefined;
  const first = Math.max(1, line - around);
  const shown = lines.slice(first - 1, line + around);
  return {
    file,
    lines: shown
      .map((text, at) => ({ number: first + at, text, isCited: first + at === line }))
      .filter(({ text, isCited }) => isCited || text.trim() !== ""),
  };
}

/** Splits a line at a quotation, so that it can be marked. White space and case may differ. */
export function splitAtQuote(line: string, quote: string): [string, string, string] {
  const words = quote
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const found = words.length > 0 ? new RegExp(words.join("\\s+"), "iu").exec(line) : null;
  if (!found) return [line, "", ""];
  const end = found.index + found[0].length;
  return [line.slice(0, found.index), found[0], line.slice(end)];
}

/** A line of the notes that belongs to a text. */
export interface Related extends Source {
  /** `cited`: the text names the place or quotes it. `similar`: they share words. */
  how: "cited" | "similar";
}

/** Returns the lines of the notes that a question names, quotes or shares its words with, those that it cites first. */
export function relatedLines(text: string, notes: ReadonlyMap<string, string>, max = 5): Related[] {
  const found = new Map<string, Related & { score: number }>();
  const put = (related: Related, score: number) => {
    const key = `${related.file}:${related.line}`;
    const known = found.get(key);
    if (!known || known.score < score) found.set(key, { ...related, score });
  };
  const quotes = [...text.matchAll(/["“„]([^"“”„]{8,})["”“]/g)].map((quote) => plain(quote[1] ?? ""));
  const sentences = text.split(/(?<=[.?!])\s+|\n/).map((sentence) => termsOf(sentence));
  for (const [file, content] of notes) {
    const places = placesOf(text, file);
    content.split("\n").forEach((line, at) => {
      if (line.trim() === "") return;
      const isCited = places.has(at + 1) || quotes.some((quote) => plain(line).includes(quote));
      const shared = Math.max(...sentences.map((terms) => similarity(terms, termsOf(line))));
      const place = { file, line: at + 1, quote: line.trim() };
      if (isCited) put({ ...place, how: "cited" }, 10);
      else if (shared > 0) put({ ...place, how: "similar" }, shared);
    });
  }
  const all = [...found.values()].sort((a, b) => b.score - a.score);
  return all.slice(0, max).map(({ score: _, ...related }) => related);
}

/** Returns the line numbers that a text names behind the name of a file: `notes/a.md:3`. */
function placesOf(text: string, file: string): Set<number> {
  const places = new Set<number>();
  for (let at = text.indexOf(`${file}:`); at >= 0; at = text.indexOf(`${file}:`, at + 1)) {
    const number = /^\d+/.exec(text.slice(at + file.length + 1, at + file.length + 9));
    if (number) places.add(Number(number[0]));
  }
  return places;
}

const plain = (text: string) => text.toLowerCase().replace(/\s+/g, " ").trim();

/** Words that say what a text is about: long ones and numbers. */
function termsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => word.length > 3 || /\d/.test(word)));
}

/** Returns the share of the smaller set that both have; zero if it is less than half or fewer than two words. */
function similarity(one: Set<string>, other: Set<string>): number {
  const smaller = Math.min(one.size, other.size);
  if (smaller < 2) return 0;
  let shared = 0;
  for (const term of one) if (other.has(term)) shared++;
  return shared >= 2 && shared * 2 >= smaller ? shared / smaller : 0;
}
