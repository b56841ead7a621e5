import fc from "fast-check";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import { Markdown } from "./Markdown.tsx";

const drawn = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));

/** Elements that a text may become. None of them runs, loads, sends or leads anywhere. */
const ELEMENTS = new Set(
  "div p pre code blockquote ul ol li section table thead tbody tr th td hr br strong em del span bdi button".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(
  "class dir data-level data-language start tabindex aria-label colspan type".split(" "),
);

function expectHarmless(text: string): void {
  for (const [, name = "", rest = ""] of drawn(text).matchAll(
    /<([a-z][^\s>/]*)((?:\s+[^\s=>]+="[^"]*")*)\s*\/?>/gi,
  )) {
    expect(ELEMENTS).toContain(name);
    for (const [, attribute = ""] of rest.matchAll(/([^\s=]+)="[^"]*"/g))
      expect(ATTRIBUTES).toContain(attribute.toLowerCase());
  }
}

const pieces = fc.array(
  fc.oneof(
    fc.constantFrom(
      "<script>",
      "<img src=x onerror=a()>",
      '"><b>',
      "javascript:a()",
      "](javascript:a())",
      "[",
      "![",
      "](http://example.com/)",
      "<http://example.com>",
      "```",
      '```html"onload="a()\n',
      "| a | b |\n|-|-|\n",
      "> ",
      "- ",
      "1. ",
      "# ",
      "**",
      "`",
      "\n",
      "\n\n",
      "&lt;",
      "\u202e",
      "\u0000",
    ),
    fc.string({ maxLength: 6 }),
  ),
  { maxLength: 40 },
);

test("no text becomes an element that could do something", () => {
  fc.assert(
    fc.property(pieces, (parts) => expectHarmless(parts.join(""))),
    { numRuns: 200 },
  );
}, 60_000);

test("a link is its text, its whole address, and a button that copies it", () => {
  const page = drawn("[Approve](http://example.com/a?b=1)");
  expect(page).toContain("http://example.com/a?b=1");
  expect(page).not.toContain("href");
  expect(page.match(/<button[^>]*>([^<]*)</)?.[1]).toBe("Copy");
});

test("an image is not loaded", () => {
  expect(drawn("![cat](http://example.com/cat.png)")).not.toContain("<img");
});
