// Drives the apps in a browser, and writes the results as a JUnit file.
//
// usage: node drive.mjs --server URL --browser FILE --junit FILE --packages FOLDER
//   [--screenshots FOLDER] [--only TEXT] APP=URL...

import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";

import { ServerClient } from "./server_client.mjs";
import { Visit } from "./visit.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string" },
    browser: { type: "string" },
    junit: { type: "string" },
    packages: { type: "string" },
    screenshots: { type: "string" },
    only: { type: "string" },
  },
});

// The packages are in the cache folder, not next to this file.
const { chromium } = createRequire(`${options.packages}/`)("playwright-core");

const DRIVE_MAX_MS = 90_000;

const only = options.only ?? "";
const server = new ServerClient(options.server);
const results = [];
if (options.screenshots) await mkdir(options.screenshots, { recursive: true });
const browser = await chromium.launch({
  executablePath: options.browser,
  // The apps ask other servers for fonts. A drive must not depend on them.
  args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
});
for (const app of positionals) {
  const [name, url] = app.split(/=(.*)/s);
  const { drives } = await import(`./${name}.mjs`);
  for (const [title, drive] of Object.entries(drives)) {
    if (`${name}: ${title}`.includes(only)) results.push(await run(name, url, title, drive));
  }
}
await browser.close();
await writeFile(options.junit, junit(results));

async function run(app, url, title, drive) {
  // Each drive starts with a server that has no threads.
  await server.call("POST", "/internal/truncate", { runs: true, threads: true });
  const { screenshots } = options;
  const visit = new Visit(browser, { name: `${app}--${title}`, app: url, server: server.url, screenshots });
  const started = performance.now();
  let failure;
  try {
    await within(drive({ visit, server }), DRIVE_MAX_MS);
    if (visit.problems.length > 0) failure = visit.problems.join("\n");
  } catch (error) {
    failure = [error.stack, ...visit.problems].join("\n");
    await visit.shot("failed").catch(() => {});
  }
  await visit.end();
  const seconds = (performance.now() - started) / 1000;
  console.log(`${failure ? "FAILED" : "passed"} ${app}: ${title} (${seconds.toFixed(1)} s)`);
  if (failure) console.log(failure.replaceAll(/^/gm, "    "));
  return { app, title, seconds, failure };
}

async function within(work, limit) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${limit / 1000} s`)), limit);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function junit(results) {
  const cases = results.map(({ app, title, seconds, failure }) => {
    const attributes = `classname="apps/${app}.mjs" name="${escaped(title)}" time="${seconds.toFixed(3)}"`;
    const body = failure === undefined ? "" : `<failure>${escaped(failure)}</failure>`;
    return `<testcase ${attributes}>${body}</testcase>`;
  });
  return `<?xml version="1.0"?>\n<testsuites><testsuite name="apps">\n${cases.join("\n")}\n</testsuite></testsuites>\n`;
}

function escaped(text) {
  // Control characters, such as the colors of an assertion, are not allowed in XML.
  const plain = text.replaceAll(/[^\t\n\x20-\uFFFD]/g, "");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
