/** Finds entries of the command palette by what was typed, with gaps allowed. */

export interface PaletteEntry<Group extends string = string> {
  id: string;
  group: Group;
  title: string;
  /** Shown next to the title, and searched. */
  detail?: string | undefined;
  /** Searched and not shown. */
  keywords?: string | undefined;
}

export interface PaletteGroup<Entry> {
  group: string;
  entries: Entry[];
}

/** Text of an entry beyond this is not searched: metadata of a thread may be megabytes. */
const SEARCHED_CHARACTERS_MAX = 400;
const DETAIL_WEIGHT = 0.6;
const KEYWORDS_WEIGHT = 0.5;

/** Returns how well a text matches a query; `undefined` if its letters are not in it, in their order. Higher is better. */
export function fuzzyScore(query: string, text: string): number | undefined {
  const words = plain(query).split(/\s+/).filter(Boolean);
  const searched = plain(text);
  let sum = 0;
  for (const word of words) {
    const score = wordScore(word, searched);
    if (score === undefined) return undefined;
    sum += score;
  }
  return sum;
}

/** Returns the entries that match, by group. The groups with the best entries come first; without a query, all in their order. */
export function searchEntries<Entry extends PaletteEntry>(
  query: string,
  entries: readonly Entry[],
  limitPerGroup: number,
): PaletteGroup<Entry>[] {
  const isEmpty = query.trim() === "";
  const groups = new Map<string, { entry: Entry; score: number }[]>();
  for (const entry of entries) {
    const score = isEmpty ? 0 : entryScore(query, entry);
    if (score === undefined) continue;
    const found = groups.get(entry.group);
    if (found) found.push({ entry, score });
    else groups.set(entry.group, [{ entry, score }]);
  }
  // Sorting is stable, so entries that match equally well keep their order.
  const sorted = [...groups].map(([group, found]) => ({
    group,
    found: found.sort((a, b) => b.score - a.score).slice(0, limitPerGroup),
  }));
  sorted.sort((a, b) => (b.found[0]?.score ?? 0) - (a.found[0]?.score ?? 0));
  return sorted.map(({ group, found }) => ({ group, entries: found.map(({ entry }) => entry) }));
}

function entryScore(query: string, entry: PaletteEntry): number | undefined {
  const { title, detail = "", keywords = "" } = entry;
  const scores = [
    fuzzyScore(query, title),
    weighted(fuzzyScore(query, detail), DETAIL_WEIGHT),
    weighted(fuzzyScore(query, keywords), KEYWORDS_WEIGHT),
    // Words of a query may be in different fields: "mail error".
    weighted(fuzzyScore(query, `${cut(title)} ${cut(detail)} ${cut(keywords)}`), KEYWORDS_WEIGHT),
  ].filter((score) => score !== undefined);
  return scores.length === 0 ? undefined : Math.max(...scores);
}

function weighted(score: number | undefined, weight: number): number | undefined {
  return score === undefined ? undefined : score * weight;
}

/** Without case and accents, so that `Übersicht` is found by `ubersicht`. */
function plain(text: string): string {
  return cut(text).normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

function cut(text: string): string {
  return text.slice(0, SEARCHED_CHARACTERS_MAX);
}

function wordScore(word: string, text: string): number | undefined {
  const whole = text.indexOf(word);
  if (whole >= 0) {
    const start = startOfWord(word, text);
    const isStart = start >= 0;
    return 2 + (isStart ? 1 : 0) + (start === 0 ? 0.5 : 0) + word.length / (text.length + 1);
  }
  return scatteredScore(word, text);
}

/** Returns where a word of the text begins with `word`; -1 if none does. */
function startOfWord(word: string, text: string): number {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (isStartOfWord(text, at)) return at;
  }
  return -1;
}

function isStartOfWord(text: string, at: number): boolean {
  return at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1] ?? " ");
}

/** The letters of a word with gaps between them: more for letters that begin words or follow each other. */
function scatteredScore(word: string, text: string): number | undefined {
  let at = -1;
  let points = 0;
  for (const letter of word) {
    const found = text.indexOf(letter, at + 1);
    if (found < 0) return undefined;
    if (found === at + 1) points += 0.6;
    else if (isStartOfWord(text, found)) points += 1;
    at = found + letter.length - 1;
  }
  // At most 1, which is less than any whole match has.
  return Math.min(points / word.length, 1);
}
