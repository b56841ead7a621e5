/**
 * Reads Markdown into a tree that has no HTML, no addresses to follow and no images to load. The text may be hostile: reading takes
 * time in proportion to its length, and the tree has limits on its depth and on the number of its nodes.
 */

export { visibleText } from "./visible_text.ts";

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "break" }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; address: string; children: Inline[] }
  | { kind: "image"; address: string; text: string };

export type Block =
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; start: number | undefined; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** How deep quotes and lists may be nested; what is deeper is text. */
export const DEPTH_MAX = 8;
/** How many nodes a tree may have; what comes after is text. */
export const NODES_MAX = 20_000;
const COLUMNS_MAX = 64;
const ADDRESS_MAX = 2000;

export function parseMarkdown(text: string): Block[] {
  return new BlockReader().read(text.split(/\r\n|\n|\r/), 0);
}

interface Marker {
  indent: number;
  /** Number of characters before the content of the item. */
  width: number;
  ordered: boolean;
  number: number;
}

class BlockReader {
  #nodes = 0;

  read(lines: string[], depth: number): Block[] {
    const blocks: Block[] = [];
    let at = 0;
    while (at < lines.length) {
      if (this.#nodes >= NODES_MAX) {
        blocks.push({ kind: "paragraph", children: [{ kind: "text", text: lines.slice(at).join("\n") }] });
        return blocks;
      }
      this.#nodes += 1;
      at = this.#readBlock(lines, at, depth, blocks);
    }
    return blocks;
  }

  /** Reads a block, and returns the number of the line after it. */
  #readBlock(lines: string[], at: number, depth: number, blocks: Block[]): number {
    const line = lines[at] ?? "";
    if (line.trim() === "") return at + 1;
    const fence = fenceOf(line);
    if (fence) return this.#readFence(lines, at, fence, blocks);
    const heading = headingOf(line);
    if (heading) {
      blocks.push({ kind: "heading", level: heading.level, children: this.#inline(heading.text) });
      return at + 1;
    }
    if (isRule(line)) {
      blocks.push({ kind: "rule" });
      return at + 1;
    }
    if (depth < DEPTH_MAX) {
      if (isQuote(line)) return this.#readQuote(lines, at, depth, blocks);
      const marker = markerOf(line);
      if (marker) return this.#readList(lines, at, depth, marker, blocks);
    }
    if (isTable(line, lines[at + 1])) return this.#readTable(lines, at, blocks);
    return this.#readParagraph(lines, at, depth, blocks);
  }

  #readFence(lines: string[], at: number, fence: Fence, blocks: Block[]): number {
    let end = at + 1;
    while (end < lines.length && !closes(lines[end] ?? "", fence)) end += 1;
    const text = lines.slice(at + 1, end).join("\n");
    blocks.push({ kind: "code", language: fence.language, text });
    return end + 1;
  }

  #readQuote(lines: string[], at: number, depth: number, blocks: Block[]): number {
    let end = at;
    const inner: string[] = [];
    for (; end < lines.length && isQuote(lines[end] ?? ""); end++) {
      inner.push((lines[end] ?? "").trimStart().slice(1).replace(/^ /, ""));
    }
    blocks.push({ kind: "quote", children: this.read(inner, depth + 1) });
    return end;
  }

  #readList(lines: string[], at: number, depth: number, first: Marker, blocks: Block[]): number {
    const items: Block[][] = [];
    let end = at;
    while (end < lines.length) {
      const marker = markerOf(lines[end] ?? "");
      if (
        !marker ||
        marker.ordered !== first.ordered ||
        marker.indent > first.indent + 1 ||
        marker.indent < first.indent
      )
        break;
      if (this.#nodes >= NODES_MAX) break;
      this.#nodes += 1;
      const item = [(lines[end] ?? "").slice(marker.width)];
      end += 1;
      end = takeItem(lines, end, marker, item);
      items.push(this.read(item, depth + 1));
    }
    blocks.push({ kind: "list", start: first.ordered ? first.number : undefined, items });
    return end;
  }

  #readTable(lines: string[], at: number, blocks: Block[]): number {
    const columns = cellsOf(lines[at] ?? "");
    const head = columns.map((cell) => this.#inline(cell));
    const rows: Inline[][][] = [];
    let end = at + 2;
    for (; end < lines.length && (lines[end] ?? "").includes("|"); end++) {
      if (this.#nodes >= NODES_MAX) break;
      rows.push(
        cellsOf(lines[end] ?? "")
          .slice(0, columns.length)
          .map((cell) => this.#inline(cell)),
      );
      this.#nodes += 1 + columns.length;
    }
    blocks.push({ kind: "table", head, rows });
    return end;
  }

  #readParagraph(lines: string[], at: number, depth: number, blocks: Block[]): number {
    let end = at + 1;
    while (end < lines.length && !interrupts(lines, end, depth)) end += 1;
    blocks.push({ kind: "paragraph", children: this.#inline(lines.slice(at, end).join("\n")) });
    return end;
  }

  #inline(text: string): Inline[] {
    const reader = new InlineReader(text, NODES_MAX - this.#nodes);
    const children = reader.read();
    this.#nodes += reader.nodes;
    return children;
  }
}

/** Adds the further lines of a list item to it, and returns the number of the line after it. */
function takeItem(lines: string[], from: number, marker: Marker, item: string[]): number {
  let end = from;
  let blanks = 0;
  for (; end < lines.length; end++) {
    const line = lines[end] ?? "";
    if (line.trim() === "") {
      blanks += 1;
      // Two blank lines end a list, so that a text after it is not taken for a part of it.
      if (blanks > 1) break;
      continue;
    }
    const indent = indentOf(line);
    const isInside = indent >= marker.indent + 2;
    const isLazy = blanks === 0 && !markerOf(line) && !interruptsAlways(line);
    if (!isInside && !isLazy) break;
    if (blanks > 0) item.push("");
    blanks = 0;
    item.push(isInside ? dedent(line, marker.width) : line);
  }
  return end;
}

/** Whether a line ends the paragraph before it. */
function interrupts(lines: string[], at: number, depth: number): boolean {
  const line = lines[at] ?? "";
  if (line.trim() === "" || interruptsAlways(line)) return true;
  if (depth < DEPTH_MAX && (isQuote(line) || markerOf(line) !== undefined)) return true;
  return isTable(line, lines[at + 1]);
}

function interruptsAlways(line: string): boolean {
  return fenceOf(line) !== undefined || headingOf(line) !== undefined || isRule(line);
}

function indentOf(line: string): number {
  let indent = 0;
  for (const char of line) {
    if (char === " ") indent += 1;
    else if (char === "\t") indent += 4;
    else break;
  }
  return indent;
}

/** Removes up to this many columns of space. */
function dedent(line: string, columns: number): string {
  let at = 0;
  for (let column = 0; column < columns && at < line.length; at++) {
    if (line[at] === " ") column += 1;
    else if (line[at] === "\t") column += 4;
    else break;
  }
  return line.slice(at);
}

interface Fence {
  mark: string;
  length: number;
  language: string;
}

function fenceOf(line: string): Fence | undefined {
  const text = line.trimStart();
  const mark = text[0];
  if ((mark !== "`" && mark !== "~") || line.length - text.length > 8) return undefined;
  const length = runLength(text, 0);
  const rest = text.slice(length);
  // Backticks after the opening ones make it code inside of a line.
  if (length < 3 || (mark === "`" && rest.includes("`"))) return undefined;
  return { mark, length, language: rest.trim().split(" ", 1)[0]?.slice(0, 40) ?? "" };
}

function closes(line: string, fence: Fence): boolean {
  const text = line.trim();
  return text[0] === fence.mark && text.length >= fence.length && runLength(text, 0) === text.length;
}

function runLength(text: string, at: number): number {
  let end = at;
  while (end < text.length && text[end] === text[at]) end += 1;
  return end - at;
}

function headingOf(line: string): { level: number; text: string } | undefined {
  const text = line.trimStart();
  if (text[0] !== "#") return undefined;
  const level = runLength(text, 0);
  const rest = text.slice(level);
  if (level > 6 || (rest !== "" && rest[0] !== " " && rest[0] !== "\t")) return undefined;
  return { level, text: withoutClosing(rest.trim()) };
}

function withoutClosing(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trimEnd() : text;
}

function isRule(line: string): boolean {
  const mark = line.trimStart()[0];
  if (mark !== "-" && mark !== "*" && mark !== "_") return false;
  let count = 0;
  for (const char of line) {
    if (char === mark) count += 1;
    else if (char !== " " && char !== "\t") return false;
  }
  return count >= 3;
}

function isQuote(line: string): boolean {
  return line.trimStart()[0] === ">";
}

function markerOf(line: string): Marker | undefined {
  const indent = indentOf(line);
  const text = line.trimStart();
  const space = line.length - text.length;
  if ("-*+".includes(text[0] ?? " ") && isSpace(text[1])) {
    return { indent, width: space + 2, ordered: false, number: 0 };
  }
  let digits = 0;
  while (digits < 9 && text[digits] !== undefined && "0123456789".includes(text[digits] ?? " ")) digits += 1;
  if (digits === 0 || !".)".includes(text[digits] ?? " ") || !isSpace(text[digits + 1])) return undefined;
  return { indent, width: space + digits + 2, ordered: true, number: Number(text.slice(0, digits)) };
}

function isSpace(char: string | undefined): boolean {
  return char === undefined || char === " " || char === "\t";
}

function isTable(line: string, next: string | undefined): boolean {
  if (next === undefined || !line.includes("|") || !next.includes("-")) return false;
  const columns = cellsOf(next);
  if (columns.length > COLUMNS_MAX || !columns.every((cell) => /^:?-+:?$/.test(cell))) return false;
  return cellsOf(line).length === columns.length;
}

/** Splits a row at its bars. */
function cellsOf(line: string): string[] {
  const text = line.trim();
  const cells: string[] = [];
  let from = text[0] === "|" ? 1 : 0;
  for (let at = from; at < text.length && cells.length <= COLUMNS_MAX; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "|") {
      cells.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  if (from < text.length) cells.push(text.slice(from).trim());
  return cells;
}

/** What was opened and may be closed: where its content begins among the nodes. */
interface Opener {
  mark: string;
  node: number;
}

const KINDS = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" } as const;
type EmphasisMark = keyof typeof KINDS;
const MARKS = "\\`*_~[]!\n<";
const ESCAPED = "\\`*_~[]()#+-.!|<>{}\"'&:;=@$%^,/?";

/**
 * Reads a line of text in one pass. Whatever is opened is put on a stack and taken off once, and every search forward remembers what
 * it found, so no input is read twice.
 */
class InlineReader {
  readonly #text: string;
  readonly #limit: number;
  #out: Inline[] = [];
  #openers: Opener[] = [];
  /** How many openers of each mark are on the stack. */
  #open = new Map<string, number>();
  /** Positions of the runs of backticks, by length, the last one first. */
  #backticks: Map<number, number[]> | undefined;
  #nextParen = -1;
  #nextSpace = -1;
  nodes = 0;

  constructor(text: string, limit: number) {
    this.#text = text;
    this.#limit = limit;
  }

  read(): Inline[] {
    const text = this.#text;
    let at = 0;
    while (at < text.length) {
      if (this.nodes >= this.#limit) {
        this.#push({ kind: "text", text: text.slice(at) });
        break;
      }
      let end = at;
      while (end < text.length && !MARKS.includes(text[end] ?? "")) end += 1;
      if (end > at) this.#append(text.slice(at, end));
      at = end < text.length ? this.#readMark(end) : end;
    }
    this.#closeAll();
    return this.#out;
  }

  #readMark(at: number): number {
    const text = this.#text;
    switch (text[at]) {
      case "\\":
        return this.#readEscape(at);
      case "\n":
        this.#push({ kind: "break" });
        return at + 1;
      case "`":
        return this.#readCode(at);
      case "!":
        if (text[at + 1] !== "[") break;
        this.#openBracket("![");
        return at + 2;
      case "[":
        this.#openBracket("[");
        return at + 1;
      case "]":
        return this.#closeBracket(at);
      case "<":
        return this.#readAutolink(at);
      default:
        return this.#readEmphasis(at);
    }
    this.#append("!");
    return at + 1;
  }

  #readEscape(at: number): number {
    const next = this.#text[at + 1];
    if (next === "\n") this.#push({ kind: "break" });
    else if (next !== undefined && ESCAPED.includes(next)) this.#append(next);
    else {
      this.#append("\\");
      return at + 1;
    }
    return at + 2;
  }

  #readCode(at: number): number {
    const text = this.#text;
    const length = runLength(text, at);
    const found = this.#runsOf(length);
    while (found.length > 0 && (found.at(-1) ?? 0) < at + length) found.pop();
    const end = found.pop();
    if (end === undefined) {
      this.#append(text.slice(at, at + length));
      return at + length;
    }
    const code = text.slice(at + length, end).replaceAll("\n", " ");
    const isPadded = code.length > 2 && code.startsWith(" ") && code.endsWith(" ");
    this.#push({ kind: "code", text: isPadded ? code.slice(1, -1) : code });
    return end + length;
  }

  #runsOf(length: number): number[] {
    if (!this.#backticks) {
      this.#backticks = new Map();
      const found: [number, number][] = [];
      for (let at = this.#text.indexOf("`"); at >= 0; ) {
        const run = runLength(this.#text, at);
        found.push([run, at]);
        at = this.#text.indexOf("`", at + run);
      }
      for (const [run, at] of found.reverse()) {
        const same = this.#backticks.get(run);
        if (same) same.push(at);
        else this.#backticks.set(run, [at]);
      }
    }
    return this.#backticks.get(length) ?? [];
  }

  #readEmphasis(at: number): number {
    const text = this.#text;
    const char = text[at] ?? "";
    const length = runLength(text, at);
    const before = text[at - 1];
    const after = text[at + length];
    const isWord = char === "_" && isLetter(before) && isLetter(after);
    const marks = marksOf(char, length);
    if (marks.length === 0 || isWord) {
      this.#append(text.slice(at, at + length));
      return at + length;
    }
    const mayClose = !isBlank(before);
    const mayOpen = !isBlank(after);
    for (const mark of mayClose && this.#isOpen(marks[0]) ? marks : marks.toReversed()) {
      if (mayClose && this.#isOpen(mark)) this.#close(mark);
      else if (mayOpen) this.#openMark(mark);
      else this.#append(mark);
    }
    return at + length;
  }

  #isOpen(mark: string | undefined): boolean {
    return mark !== undefined && (this.#open.get(mark) ?? 0) > 0;
  }

  #openMark(mark: string): void {
    this.#openers.push({ mark, node: this.#out.length });
    this.#open.set(mark, (this.#open.get(mark) ?? 0) + 1);
    // Stands for the mark, until it is known whether it is closed.
    this.#push({ kind: "text", text: mark });
  }

  #close(mark: EmphasisMark): void {
    const opener = this.#pop((found) => found.mark === mark);
    if (!opener) return;
    const children = this.#out.splice(opener.node).slice(1);
    if (children.length === 0) this.#append(mark + mark);
    else this.#push({ kind: KINDS[mark], children });
  }

  /** Takes openers off the stack until one fits. The others stay in the text. */
  #pop(fits: (opener: Opener) => boolean): Opener | undefined {
    for (let opener = this.#openers.pop(); opener; opener = this.#openers.pop()) {
      this.#open.set(opener.mark, (this.#open.get(opener.mark) ?? 1) - 1);
      if (fits(opener)) return opener;
    }
    return undefined;
  }

  #openBracket(mark: "[" | "!["): void {
    this.#openMark(mark);
  }

  #closeBracket(at: number): number {
    const end = this.#isOpen("[") || this.#isOpen("![") ? this.#addressEnd(at) : undefined;
    if (end === undefined) {
      this.#append("]");
      return at + 1;
    }
    const opener = this.#pop(({ mark }) => mark === "[" || mark === "![");
    if (!opener) return at + 1;
    const address = this.#text.slice(at + 2, end);
    const children = this.#out.splice(opener.node).slice(1);
    if (opener.mark === "![") this.#push({ kind: "image", address, text: plainText(children) });
    else {
      this.#push({ kind: "link", address, children });
      // A link has no link inside, so brackets that are still open are text.
      this.#closeAll();
    }
    return end + 1;
  }

  /** Returns where the address after `](` ends; `undefined` if there is none. */
  #addressEnd(at: number): number | undefined {
    const text = this.#text;
    if (text[at + 1] !== "(") return undefined;
    this.#nextParen = nextOf(text, ")", at + 2, this.#nextParen);
    this.#nextSpace = nextSpace(text, at + 2, this.#nextSpace);
    let end = this.#nextParen;
    if (end <= at + 2 || end - at > ADDRESS_MAX || this.#nextSpace < end) return undefined;
    // An address may have a pair of parentheses.
    if (text.slice(at + 2, end).includes("(") && text[end + 1] === ")") end += 1;
    return end;
  }

  #readAutolink(at: number): number {
    const text = this.#text;
    const isAddress = text.startsWith("http://", at + 1) || text.startsWith("https://", at + 1);
    const end = isAddress ? text.slice(at, at + ADDRESS_MAX).indexOf(">") : -1;
    const address = end > 0 ? text.slice(at + 1, at + end) : "";
    if (address === "" || /\s/.test(address)) {
      this.#append("<");
      return at + 1;
    }
    this.#push({ kind: "link", address, children: [{ kind: "text", text: address }] });
    return at + end + 1;
  }

  #closeAll(): void {
    this.#openers = [];
    this.#open.clear();
  }

  #append(text: string): void {
    const last = this.#out.at(-1);
    // The text of an opener has to stay alone, or it could not be taken away.
    const isOpener = this.#openers.at(-1)?.node === this.#out.length - 1;
    if (last?.kind === "text" && !isOpener) last.text += text;
    else this.#push({ kind: "text", text });
  }

  #push(node: Inline): void {
    this.nodes += 1;
    this.#out.push(node);
  }
}

/** Splits a run of marks: three are two and one. Longer runs are text. */
function marksOf(char: string, length: number): EmphasisMark[] {
  if (char === "~") return length === 2 ? ["~~"] : [];
  const one = char as "*" | "_";
  const two = `${one}${one}` as "**" | "__";
  if (length === 1) return [one];
  if (length === 2) return [two];
  return length === 3 ? [one, two] : [];
}

function isBlank(char: string | undefined): boolean {
  return char === undefined || /\s/.test(char);
}

function isLetter(char: string | undefined): boolean {
  return char !== undefined && /[\p{L}\p{N}]/u.test(char);
}

/** Returns where a character is next, or the end. What was found before is used as long as it is ahead. */
function nextOf(text: string, char: string, from: number, known: number): number {
  if (known >= from) return known;
  const found = text.indexOf(char, from);
  return found < 0 ? Number.POSITIVE_INFINITY : found;
}

function nextSpace(text: string, from: number, known: number): number {
  if (known >= from) return known;
  let at = from;
  while (at < text.length && !isBlank(text[at])) at += 1;
  return at < text.length ? at : Number.POSITIVE_INFINITY;
}

/** Returns the text of nodes, without marks. */
export function plainText(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => {
      if (node.kind === "break") return "\n";
      if ("text" in node) return node.text;
      return plainText(node.children);
    })
    .join("");
}

/**
 * Splits a text at blank lines outside of fenced code into parts of about `size` characters. While a text grows, all parts but the last
 * stay the same, so they are read and drawn once.
 */
export function splitMarkdown(text: string, size = 4000): string[] {
  const parts: string[] = [];
  let from = 0;
  let fence: Fence | undefined;
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at);
    if (end < 0) break;
    const line = text.slice(at, Math.min(end, at + 200));
    if (fence) fence = closes(line, fence) ? undefined : fence;
    else fence = fenceOf(line);
    at = end + 1;
    const isBlankLine = line.trim() === "" && !fence;
    // Without a good place for long, the split is made anywhere.
    if ((isBlankLine && at - from >= size) || at - from >= size * 4) {
      parts.push(text.slice(from, at));
      from = at;
    }
  }
  if (from < text.length || parts.length === 0) parts.push(text.slice(from));
  return parts;
}
