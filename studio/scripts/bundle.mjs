// Compresses what Vite built and puts it into the crate that serves it, with the hash of the sources that it was built from.
//
// With `--check` it writes nothing and fails if the bundle in the crate is another one.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";

const studio = join(import.meta.dirname, "..");
const dist = join(studio, "dist");
const bundle = join(studio, "../crates/superstep-studio/bundle");
const hashFile = join(bundle, "../source.sha256");
// The test of the crate has the same list.
const SOURCES = ["index.html", "package-lock.json", "public", "src", "vite.config.ts"];
// In bytes, compressed: what the first view loads, what a question loads besides, what the graph loads besides the first view,
// and everything.
const BUDGETS = { first: 92_000, question: 60_000, graph: 90_000, all: 1_500_000 };

const filesBelow = (path) =>
  statSync(path).isFile() ? [path] : readdirSync(path).flatMap((name) => filesBelow(join(path, name)));
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

function sourceHash() {
  const files = SOURCES.flatMap((part) => filesBelow(join(studio, part)));
  const lines = files
    .filter((file) => !file.includes(".test."))
    .map((file) => [relative(studio, file), sha256(readFileSync(file))])
    // By the bytes of the names, as Rust sorts them.
    .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .map(([name, hash]) => `${name} ${hash}\n`);
  return sha256(lines.join(""));
}

const compress = (data) =>
  brotliCompressSync(data, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length },
  });

const built = new Map(filesBelow(dist).map((file) => [relative(dist, file), readFileSync(file)]));
const sizes = new Map([...built].map(([name, data]) => [name, compress(data).length]));

/** The files that a file loads by itself, itself included, with their styles. */
function loadedBy(name, seen = new Set()) {
  if (seen.has(name) || !built.has(name)) return seen;
  seen.add(name);
  for (const style of stylesOf(name)) seen.add(style);
  const text = built.get(name).toString();
  const pattern = name.endsWith(".html") ? /(?:src|href)="\.\/([^"]+)"/g : /(?:from|import)\s*"\.\/([^"]+)"/g;
  for (const [, other] of text.matchAll(pattern))
    loadedBy(name.endsWith(".html") ? other : join(dirname(name), other), seen);
  return seen;
}
/** The style sheet of a script has its name, and a hash of its own. */
function stylesOf(name) {
  const stem = name.replace(/-[\w-]{8}\.js$/, "-");
  return [...built.keys()].filter((other) => other.replace(/[\w-]{8}\.css$/, "") === stem);
}
const total = (names) => [...names].reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0);
const named = (part) => [...built.keys()].filter((name) => name.includes(part));

const first = loadedBy("index.html");
const question = new Set();
for (const name of named("InboxDetail")) loadedBy(name, question);
const graph = new Set();
for (const name of [...named("GraphCanvas"), ...named("layout_worker")]) loadedBy(name, graph);
const figures = {
  first: total(first),
  question: total([...question].filter((name) => !first.has(name))),
  graph: total([...graph].filter((name) => !first.has(name))),
  all: total(built.keys()),
};
console.log(
  `compressed: first view ${figures.first}, question ${figures.question} more, graph ${figures.graph} more, everything ${figures.all} bytes`,
);
for (const [name, budget] of Object.entries(BUDGETS)) {
  if (figures[name] > budget) {
    console.error(`${name}: ${figures[name]} bytes are more than the ${budget} that it may have`);
    process.exitCode = 1;
  }
}

if (process.argv.includes("--check")) {
  const stored = filesBelow(bundle).map((file) => relative(bundle, file));
  const isSame = (name) =>
    built.has(name) && brotliDecompressSync(readFileSync(join(bundle, name))).equals(built.get(name));
  const isCurrent = stored.length === built.size && stored.every(isSame);
  if (!isCurrent || readFileSync(hashFile, "utf8").trim() !== sourceHash()) {
    console.error("the bundle in crates/superstep-studio is another one: run `npm run build` and commit it");
    process.exitCode = 1;
  }
} else {
  rmSync(bundle, { recursive: true, force: true });
  for (const [name, data] of built) {
    mkdirSync(dirname(join(bundle, name)), { recursive: true });
    writeFileSync(join(bundle, name), compress(data));
  }
  writeFileSync(hashFile, `${sourceHash()}\n`);
}
