/** A component is read at a glance: what is longer than a screen and a bit is made of parts with names. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

const LINES_MAX = 90;

interface Declaration {
  name: string;
  lines: number;
}

/** The declarations of a module with their lines. Each goes to the next line that is not indented and closes nothing. */
function declarations(source: string): Declaration[] {
  const found: Declaration[] = [];
  let at: Declaration | undefined;
  let blank = 0;
  for (const line of source.split("\n")) {
    if (/^[a-z/@]/i.test(line)) {
      const name = /^(?:export )?(?:default )?(?:async )?(?:function|const|class) (\w+)/.exec(line)?.[1];
      at = name === undefined ? undefined : { name, lines: 0 };
      if (at) found.push(at);
      blank = 0;
    }
    if (!at) continue;
    // Blank lines count if something of the declaration follows them.
    at.lines += line === "" ? 0 : blank + 1;
    blank = line === "" ? blank + 1 : 0;
  }
  return found;
}

/** The modules with components, by their paths. */
function modules(): Map<string, string> {
  const folder = import.meta.dirname;
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const components = paths.filter((path) => path.endsWith(".tsx") && !path.endsWith(".test.tsx"));
  return new Map(components.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

test("every component is at most a screen and a bit", () => {
  const all = [...modules()].flatMap(([path, source]) =>
    declarations(source).map(({ name, lines }) => ({ where: `${path}: ${name}`, lines })),
  );
  expect(all.length).toBeGreaterThan(100);
  expect(all.filter(({ lines }) => lines > LINES_MAX)).toEqual([]);
});

test("a long component is found, and what is next to it is not part of it", () => {
  const body = "  use();\n".repeat(LINES_MAX);
  const source = `import x from "y";\n\nconst a = 1;\n\n/** B. */\nexport function B({\n  c,\n}: {\n  c: string;\n}) {\n${body}}\n\nexport const D = memo(function D() {\n  return null;\n});\n`;
  expect(declarations(source)).toEqual([
    { name: "a", lines: 1 },
    { name: "B", lines: LINES_MAX + 6 },
    { name: "D", lines: 3 },
  ]);
});
