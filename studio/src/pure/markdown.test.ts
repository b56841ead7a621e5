import fc from "fast-check";
import { expect, test } from "vitest";

import {
  type Block,
  DEPTH_MAX,
  type Inline,
  NODES_MAX,
  parseMarkdown,
  plainText,
  splitMarkdown,
  visibleText,
} from "./markdown.ts";

/** The tree in short: `strong(bold)`. */
function inline(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => {
      switch (node.kind) {
        case "text":
          return node.text;
        case "break":
          return "/";
        case "code":
          return `code(${node.text})`;
        case "image":
          return `image(${node.text}|${node.address})`;
        case "link":
          return `link(${inline(node.children)}|${node.address})`;
        default:
          return `${node.kind}(${inline(node.children)})`;
      }
    })
    .join("");
}

function block(found: Block): string {
  switch (found.kind) {
    case "rule":
      return "rule";
    case "code":
      return `code[${found.language}](${found.text})`;
    case "quote":
      return `quote(${found.children.map(block).join(";")})`;
    case "list":
      return `list${found.start ?? ""}(${found.items.map((item) => item.map(block).join(";")).join(" | ")})`;
    case "table":
      return `table(${[found.head, ...found.rows].map((row) => row.map(inline).join(",")).join(" | ")})`;
    case "heading":
      return `h${found.level}(${inline(found.children)})`;
    default:
      return inline(found.children);
  }
}

const short = (text: string) => parseMarkdown(text).map(block).join("; ");

test.each([
  ["a **b** *c* __d__ _e_ ~~f~~ `g`", "a strong(b) em(c) strong(d) em(e) del(f) code(g)"],
  ["***both***", "strong(em(both))"],
  ["**a *b* c**", "strong(a em(b) c)"],
  ["2 * 3 * 4, snake_case_name, a**, **", "2 * 3 * 4, snake_case_name, a**, **"],
  ["**open and *open", "**open and *open"],
  ["`` a`b `` and ``` open", "code(a`b) and ``` open"],
  ["\\*not\\* \\x", "*not* \\x"],
  ["[text](https://x.example/a_(b)) after", "link(text|https://x.example/a_(b)) after"],
  ["[no] (x) [no]( x ) ![pic](p.png)", "[no] (x) [no]( x ) image(pic|p.png)"],
  ["[**bold**](u)", "link(strong(bold)|u)"],
  ["<https://x.example> <script>", "link(https://x.example|https://x.example) <script>"],
  ["a\nb", "a/b"],
  ["# One\n## Two ##\n#no", "h1(One); h2(Two); #no"],
  ["a\n\n---\n\n***", "a; rule; rule"],
  ["```rust\nfn *a*() {}\n\n```\nafter", "code[rust](fn *a*() {}\n); after"],
  ["~~~\nopen", "code[](open)"],
  ["> a\n> > b\n\nc", "quote(a;quote(b)); c"],
  ["- a\n- b\n  - c\n- d", "list(a | b;list(c) | d)"],
  ["3. a\n4. b\n\ntext", "list3(a | b); text"],
  ["- a\n\n  more\n- b", "list(a;more | b)"],
  ["| a | b |\n| - | :-: |\n| 1 | **2** |\nafter", "table(a,b | 1,strong(2)); after"],
  ["a | b\nno table", "a | b/no table"],
  ["<b>x</b>&amp;", "<b>x</b>&amp;"],
])("%j", (text, expected) => {
  expect(short(text)).toBe(expected);
});

function depthOf(blocks: readonly Block[]): number {
  return Math.max(
    0,
    ...blocks.map((found) => {
      if (found.kind === "quote") return 1 + depthOf(found.children);
      if (found.kind === "list") return 1 + Math.max(0, ...found.items.map(depthOf));
      return 0;
    }),
  );
}

const hostile: [string, string][] = [
  ["quotes", ">".repeat(1000)],
  ["quote lines", `${"> ".repeat(500)}\n`],
  ["lists", `${"- ".repeat(500)}\n`],
  ["indents", Array.from({ length: 200 }, (_, depth) => `${"  ".repeat(depth)}- a`).join("\n")],
  ["stars", "*"],
  ["spaced stars", "* a "],
  ["emphasis", "*a "],
  ["closing", "a* "],
  ["both", "*a **b __c _d "],
  ["alternating", "**a *b** c* "],
  ["backticks", Array.from({ length: 400 }, (_, length) => "`".repeat(length + 1)).join(" ")],
  ["brackets", "["],
  ["images", "!["],
  ["addresses", "]("],
  ["open addresses", "[](a"],
  ["links", "[a](b)"],
  ["spaced addresses", "[a](b c) "],
  ["parentheses", "[a](((((((("],
  ["autolinks", "<https://a"],
  ["tables", "|a|b|\n|-|-|\n"],
  ["wide tables", `${"|".repeat(3000)}\n${"|-".repeat(3000)}\n`],
  ["rows", "|\n"],
  ["rules", "- - "],
  ["headings", "#\n"],
  ["heading ends", "# a #"],
  ["fences", "```\n~~~\n"],
  ["escapes", "\\"],
  ["blank lines", "\n"],
  ["spaces", " "],
  ["tabs", "\t-"],
  ["numbers", "1. "],
];

test.each(hostile)("a megabyte of %s is read in time, and the tree stays small", (name, piece) => {
  const size = 1_000_000;
  const text = piece.repeat(Math.ceil(size / piece.length)).slice(0, size);
  const began = process.cpuUsage();
  const blocks = parseMarkdown(text);
  // Time of the processor, because test machines are shared. What takes quadratic time takes minutes.
  const milliseconds = process.cpuUsage(began).user / 1000;
  expect(milliseconds).toBeLessThan(["stars", "brackets", "backticks"].includes(name) ? 200 : 2000);
  expect(depthOf(blocks)).toBeLessThanOrEqual(DEPTH_MAX);
  expect(countNodes(blocks)).toBeLessThan(NODES_MAX * 3);
});

function countNodes(blocks: readonly Block[]): number {
  const inlines = (nodes: readonly Inline[]): number =>
    nodes.reduce((sum, node) => sum + 1 + ("children" in node ? inlines(node.children) : 0), 0);
  return blocks.reduce((sum, found) => {
    if (found.kind === "quote") return sum + 1 + countNodes(found.children);
    if (found.kind === "list")
      return sum + 1 + found.items.reduce((all, item) => all + 1 + countNodes(item), 0);
    if (found.kind === "table")
      return sum + [found.head, ...found.rows].flat().reduce((all, cell) => all + 1 + inlines(cell), 1);
    return sum + 1 + ("children" in found ? inlines(found.children as Inline[]) : 0);
  }, 0);
}

const marks = fc.array(
  fc.constantFrom(
    "*",
    "**",
    "_",
    "`",
    "``",
    "[",
    "](",
    ")",
    "![",
    "<https://",
    ">",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "#",
    "|",
    "---",
    "```",
    "~~",
    "\\",
    " ",
    "a",
    "b ",
    "  ",
  ),
  { maxLength: 80 },
);

test("any mixture of marks is read, and no deeper than allowed", () => {
  fc.assert(
    fc.property(marks, (parts) => {
      expect(depthOf(parseMarkdown(parts.join("")))).toBeLessThanOrEqual(DEPTH_MAX);
    }),
    { numRuns: 500 },
  );
});

test("inside of a paragraph, every letter stays, in its order", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("*", "**", "_", "`", "``", "[", "]", "~~", " ", "x", "y", "z", "\\"), {
        maxLength: 60,
      }),
      (parts) => {
        const text = `w${parts.join("")}`;
        const letters = (value: string) => value.replace(/[^wxyz]/g, "");
        const children = parseMarkdown(text).flatMap((found) =>
          found.kind === "paragraph" ? found.children : [],
        );
        expect(letters(plainText(children))).toBe(letters(text));
      },
    ),
    { numRuns: 1000 },
  );
});

test("a growing text keeps its parts", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("word ", "\n", "\n\n", "```\n", "- a\n"), { maxLength: 200 }),
      fc.nat(),
      (pieces, cut) => {
        const text = pieces.join("");
        const parts = splitMarkdown(text, 40);
        expect(parts.join("")).toBe(text);
        const before = splitMarkdown(text.slice(0, cut % (text.length + 1)), 40);
        expect(parts.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
      },
    ),
  );
});

test("a split is not made inside of code", () => {
  const text = `${"a\n".repeat(30)}\n\`\`\`\n${"b\n\n".repeat(20)}\`\`\`\n\nend`;
  const parts = splitMarkdown(text, 50);
  expect(parts).toHaveLength(3);
  expect(parts[1]?.startsWith("```")).toBe(true);
});

test("characters that hide or reorder are named", () => {
  expect(visibleText("a\u202egpj.exe\u2066b\u0000")).toBe("a⟨U+202E⟩gpj.exe⟨U+2066⟩b⟨U+0000⟩");
  expect(visibleText("a\tb\nנ 👩‍👩‍👧")).toBe("a\tb\nנ 👩‍👩‍👧");
});
