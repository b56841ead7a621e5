/** What mails, models and other people write can do nothing on the page, and other pages can do nothing to the server. */

import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

import type { Cron } from "../src/api/types.ts";
import { ATTEMPTS, Attacker, type Attempt, type Target } from "./attacker.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { note } from "./figures.ts";
import { fill, type HostileData, problemsOf, speakForAnother, startHostileLab } from "./hostile.ts";
import { begin, Lab } from "./lab.ts";
import { PAYLOADS } from "./payloads.ts";
import { panesOf, SECTIONS, settled, visit } from "./views.ts";

if (process.env.LONG) vi.setConfig({ testTimeout: 1_800_000, hookTimeout: 600_000 });

let browser: Browser;

/** Every pane of one thread and the agent's own of the others; with `LONG`, every pane of every thread. */
function panesOfAll(threads: readonly string[]): string[] {
  if (process.env.LONG) return threads.flatMap(panesOf);
  const [first = "", ...others] = threads;
  return [...panesOf(first), ...others.map((thread) => `threads/${thread}?tab=agent`)];
}

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
});

test("the inspection finds what must not be on the page", async () => {
  const page = await browser.newPage();
  const found = async (html: string) => {
    await page.setContent(`<!doctype html><main id="main">${html}</main>`);
    return (await problemsOf(page)).map((problem) => problem.split(/[:<]/)[0]?.trim());
  };
  expect(await found("<p><bdi>zq01</bdi> is calm</p>")).toEqual([]);
  expect(await found("<p>Approve <b>zq01</b></p>")).toEqual(["not isolated"]);
  expect(await found("<p><bdi>a\u202eb</bdi></p>")).toEqual(["hidden characters in"]);
  expect(await found('<p title="a\u200bb">c</p>')).toEqual(["hidden characters in title of"]);
  expect(await found("<button><bdi>zq01</bdi></button>")).toEqual(["passes for a control"]);
  expect(await found('<button aria-label="zq01">Open</button>')).toEqual(["named by others"]);
  expect(await found('<a href="http://example.com/">a</a>')).toEqual(["link to http"]);
  expect(await found("<iframe></iframe>")).toEqual(["element"]);
  expect(await found('<form action="/a"></form>')).toEqual(["action of"]);
  expect(await found('<p onclick="a()">b</p>')).toEqual(["onclick of"]);
  expect((await found("<p>a</p><style>p { width: 5000px }</style>")).join()).toMatch(/the page is \d+ wide/);
  expect(await found("<script>window.hostile = 1</script>")).toEqual(["a payload ran", "script"]);
  await page.close();
});

describe("a server full of hostile texts", () => {
  let lab: Lab;
  let data: HostileData;

  beforeAll(async () => {
    expect(PAYLOADS).toHaveLength(60);
    lab = await startHostileLab();
    data = await fill(lab);
  });
  afterAll(async () => {
    await lab?.stop();
  });

  /** The numbers of the texts that were on the page. */
  const seen = new Set<string>();

  /** Some of many alike, or all if there is time. */
  const some = (all: readonly string[]) => (process.env.LONG ? all : all.filter((_, at) => at % 12 === 6));

  const views = () => [
    ...SECTIONS,
    ...panesOfAll(data.agents),
    ...panesOf(data.full),
    ...some(data.mails).flatMap((mail) => [`threads/${mail}?tab=agent`, `threads/${mail}?tab=state`]),
    ...["analyze", "email_assistant", "sheet", "atris", "docs"].map((agent) => `start/${agent}`),
    ...some(data.assistants).flatMap((id) => [`start/${id}`, `assistants/${id}`, `assistants/${id}/compare`]),
    ...some(data.crons).map((id) => `crons/${id}`),
    "assistants/new",
    "crons/new",
    "store?prefix=hostile",
    "nowhere",
  ];

  test("every view has the policy", async () => {
    for (const view of views()) {
      const { headers, status } = await fetch(lab.page + view);
      expect(status).toBe(200);
      expect(policyOf(headers)).toEqual(POLICY);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    }
  });

  test("no text runs, loads, leaves or passes for a control, in any view", async () => {
    const watched = await open(lab.page);
    expect(await problemsIn(watched, views())).toEqual([]);
    expect([...seen].sort()).toEqual(PAYLOADS.map(({ mark }) => mark));
    await watched.close();
    note("security", { payloads: PAYLOADS.length, views: views().length });
  });

  test("nor in the question of any mail, on a phone", async () => {
    const watched = await open(lab.page, { width: 390, height: 800 });
    const items = (await lab.inbox()).map(({ interrupt }) => `inbox?item=${interrupt.id}`);
    expect(await problemsIn(watched, items)).toEqual([]);
    await watched.close();
  });

  test("nor in names, labels, messages and questions of another graph", async () => {
    const watched = await open(lab.page);
    await speakForAnother(watched.page, data.full);
    await watched.page.reload();
    await settled(watched.page);
    const items = PAYLOADS.map(({ mark }) => `inbox?item=${mark}`);
    const shown = process.env.LONG ? items : items.filter((_, at) => at % 6 === 1 || at > 54);
    expect(await problemsIn(watched, [...shown, ...panesOf(data.full)])).toEqual([]);
    await watched.close();
  });

  /** Returns what is wrong in views, each with the first view that has it. */
  async function problemsIn({ page }: WatchedPage, views: readonly string[]): Promise<string[]> {
    const found = new Map<string, string>();
    for (const view of views) {
      await visit(page, view);
      const shown = (await page.textContent("#main")) ?? "";
      for (const [mark] of shown.matchAll(/zq\d\d/g)) seen.add(mark);
      const failed = shown.includes("React error") ? ["the view failed"] : [];
      for (const problem of [...failed, ...(await problemsOf(page))])
        if (!found.has(problem)) found.set(problem, `${view}: ${problem}`);
    }
    return [...found.values()];
  }

  async function open(url: string, size: { width?: number; height?: number } = {}): Promise<WatchedPage> {
    const watched = await WatchedPage.open(browser, url, size);
    watched.page.on("dialog", (dialog) => {
      watched.problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    watched.page.on("popup", (popup) => watched.problems.push(`window: ${popup.url()}`));
    watched.page.on("framenavigated", (frame) => {
      if (!frame.url().startsWith(lab.page)) watched.problems.push(`went to ${frame.url()}`);
    });
    watched.page.on("download", (download) => watched.problems.push(`download: ${download.url()}`));
    return watched;
  }
});

describe("people with keys", () => {
  let lab: Lab;
  let threads: string[];
  let cron: string;

  beforeAll(async () => {
    const people = { alice: "read,run,answer,edit,admin", bob: "read" };
    lab = await Lab.start({ tags: ["calm"], people, args: ["--audit"] });
    threads = [];
    for (const start of Object.values(begin)) threads.push(await start(lab, "calm"));
    await lab.call("PUT", "/store/items", { namespace: ["notes"], key: "a", value: { text: "b" } });
    const made = { assistant_id: "email_assistant", schedule: "0 0 1 1 *", input: {} };
    cron = (await lab.call<Cron>("POST", "/runs/crons", made)).cron_id;
  });
  afterAll(async () => {
    await lab?.stop();
  });

  const views = () => [
    ...SECTIONS,
    ...panesOfAll(threads),
    ...["analyze", "email_assistant"].flatMap((agent) => [`start/${agent}`, `assistants/${agent}`]),
    "assistants/new",
    "crons/new",
    `crons/${cron}`,
    "store?prefix=notes&ns=notes&in=notes&key=a",
  ];

  async function enter(name: string): Promise<WatchedPage> {
    const watched = await WatchedPage.open(browser, lab.page);
    await watched.page.getByLabel("API key").fill(lab.keys.get(name) ?? "");
    await watched.page.getByRole("button", { name: "Continue" }).click();
    await settled(watched.page);
    return watched;
  }

  test("a key is in no address, no storage and no other page, and is forgotten with the page", async () => {
    const key = lab.keys.get("alice") ?? "";
    const watched = await WatchedPage.open(browser, lab.page);
    const sent: Request[] = [];
    watched.page.on("request", (request) => sent.push(request));
    await watched.page.getByLabel("API key").fill(key);
    await watched.page.getByRole("button", { name: "Continue" }).click();
    await settled(watched.page);
    for (const view of views()) {
      await visit(watched.page, view);
      expect(watched.page.url()).not.toContain(key);
    }
    expect(sent.length).toBeGreaterThan(60);
    let withKey = 0;
    for (const request of sent) {
      expect(request.url()).not.toContain(key);
      expect(request.postData() ?? "").not.toContain(key);
      const { referer, ...headers } = request.headers();
      expect(referer ?? "").toBe("");
      if (headers["x-api-key"] === key) withKey++;
    }
    expect(withKey).toBeGreaterThan(60);
    expect(await storedIn(watched.page)).not.toContain(key);
    expect(await watched.page.content()).not.toContain(key);
    expect(JSON.stringify(await watched.context.storageState({ indexedDB: true }))).not.toContain(key);

    const other = await watched.context.newPage();
    await other.goto(`${lab.url}/docs`);
    expect(await storedIn(other)).not.toContain(key);
    await watched.page.reload();
    await watched.page.getByLabel("API key").waitFor();
    await watched.close();
  });

  test("who may only read sees nothing that writes, and the server refuses it too", async () => {
    const seen = { alice: new Set<string>(), bob: new Set<string>() };
    const written: string[] = [];
    for (const name of ["alice", "bob"] as const) {
      const watched = await enter(name);
      if (name === "bob") {
        watched.page.on("request", (request) => {
          const { pathname } = new URL(request.url());
          if (request.method() !== "GET" && !READING.test(pathname))
            written.push(`${request.method()} ${pathname}`);
        });
      }
      for (const view of views()) {
        await visit(watched.page, view);
        for (const control of await controlsOf(watched.page)) seen[name].add(control);
        if (name === "bob" && view === "inbox")
          for (const key of "jaeriu") await watched.page.keyboard.press(key);
      }
      await watched.close();
    }
    expect(written).toEqual([]);
    // What alice has shows that the words are those of the page.
    const writing = (controls: Set<string>) =>
      [...controls].filter((control) => WRITING.test(control)).sort();
    expect(writing(seen.alice).length).toBeGreaterThan(15);
    expect(writing(seen.bob)).toEqual([]);
    const before = await lab.call("GET", "/superstep/audit?limit=1");
    const routes = await writingRoutes();
    for (const { method, path } of routes) {
      const answer = await asBob(method, path, {});
      expect([answer.status, `${method} ${path}`]).toEqual([403, `${method} ${path}`]);
    }
    note("security", { routes_refused_to_readers: routes.length });
    expect(await lab.call("GET", "/superstep/audit?limit=1")).toEqual(before);
  });

  /** The operations that the server lists as not for readers, with a thread that exists. */
  async function writingRoutes(): Promise<{ method: string; path: string }[]> {
    type Operations = Record<string, { "x-superstep-permissions": string[] }>;
    const { paths } = await lab.call<{ paths: Record<string, Operations> }>("GET", "/openapi.json");
    const all = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path: path
          .replace("{thread_id}", threads[0] ?? "")
          .replace("{path}", "a.txt")
          .replace(/\{\w+\}/g, threads[0] ?? ""),
        needs: operation["x-superstep-permissions"],
      })),
    );
    const writing = all.filter(({ needs }) => needs.length > 0 && !needs.includes("read"));
    expect(writing.length).toBeGreaterThan(30);
    return writing;
  }

  function asBob(method: string, path: string, json: unknown): Promise<Response> {
    const headers = { "content-type": "application/json", "x-api-key": lab.keys.get("bob") ?? "" };
    const body = method === "GET" ? null : JSON.stringify(json);
    return fetch(lab.url + path, { method, headers, body });
  }
});

/** POST requests that change nothing. */
const READING = /\/(search|count|namespaces|diff|preview|history|versions|checkpoint|stream\/events)$/;

/** Fields, and the words that controls which write begin with. */
const WRITING =
  /^(?:field(?!: Another thread)|file|(?:button|link|choice): (?:Accept|Add|Answer|Approve|Cancel|Change|Compare two|Create|Delete|Disable|Edit|Enable|Fork|Ignore|New|Raise|Reject|Remove|Respond|Revoke|Rotate|Run|Save|Send|Start|Stop|Store|Try another|Update|Upload|Use|Write|Your)\b)/;

/** Returns the controls of the view, as `role: name`. The sections of the page are links to views. */
async function controlsOf(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const roleOf = (control: Element): string => {
      if (control.closest("search, .json-search, .palette") || control.matches("[type=search]"))
        return "filter";
      if (control.matches("[type=file]")) return "file";
      if (control.matches("[type=checkbox], [type=radio], [type=range]")) return "choice";
      if (control.matches("input, textarea, [contenteditable]")) return "field";
      return control.matches("a") ? "link" : "button";
    };
    const all = document.querySelectorAll(
      "main :is(button, a.button, textarea, input, [contenteditable]), dialog button",
    );
    return [...all].map((control) => {
      const label = (control as HTMLInputElement).labels?.[0]?.textContent;
      const name = control.getAttribute("aria-label") ?? label ?? control.textContent ?? "";
      return `${roleOf(control)}: ${name.trim()}`;
    });
  });
}

/** Returns what scripts of this origin can read without the page's help. */
async function storedIn(page: Page): Promise<string> {
  return await page.evaluate(async () => {
    const names = await caches.keys();
    return JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      window.name,
      names,
      history.state,
    ]);
  });
}

describe("a page of another site", () => {
  let lab: Lab;
  let attacker: Attacker;
  let refused = 0;
  let target: Target;

  beforeAll(async () => {
    lab = await Lab.start({ tags: ["calm"] });
    attacker = await Attacker.start();
    target = { url: lab.url, thread: await begin.mail(lab, "calm"), assistant: "email_assistant" };
  });
  afterAll(async () => {
    await attacker?.stop();
    await lab?.stop();
  });

  /** All that attempts could have changed. */
  const everything = async () =>
    JSON.stringify([
      await lab.call("POST", "/threads/search", { limit: 100 }),
      await lab.state(target.thread),
      await lab.call("GET", `/threads/${target.thread}/runs`),
      await lab.call("GET", `/superstep/threads/${target.thread}/files`),
      await lab.call("POST", "/store/items/search", { namespace_prefix: [] }),
    ]);

  test("there are at least twenty attempts", () => {
    expect(Object.keys(ATTEMPTS).length).toBeGreaterThanOrEqual(20);
  });

  test.each(Object.entries(ATTEMPTS))("cannot %s", async (_, attempt) => {
    const before = await everything();
    expect(await attacker.page.evaluate(attempt, target)).toBeUndefined();
    expect(await everything()).toBe(before);
    note("security", { cross_site_attempts_refused: ++refused });
  });

  test("cannot get around it with a name that leads to this machine", async () => {
    const { port } = new URL(lab.url);
    for (const path of ["/superstep/inbox", "/studio/", "/docs", `/threads/${target.thread}/state`]) {
      const found = await attacker.rebound(port, path);
      expect(found.status).toBe(403);
      expect(found.text).not.toContain("report");
    }
  });

  test("cannot put Studio into a frame", async () => {
    for (const path of ["/studio/", "/studio/inbox", "/docs"])
      expect(await attacker.frame(lab.url + path)).not.toMatch(/Studio|Superstep|Inbox/);
  });

  test("cannot lead a person to a route that does something, but to Studio", async () => {
    expect(await attacker.leadTo(`${lab.url}/threads/${target.thread}/state`)).toContain(
      "may not use this server",
    );
    expect(await attacker.leadTo(`${lab.url}/studio/inbox`)).toContain("Superstep Studio");
  });

  test("could do all that if the server allowed it: the attempts are real", async () => {
    const open = await Lab.start({ args: ["--allow-origin", attacker.origin] });
    const target = { url: open.url, thread: await open.newThread(), assistant: "email_assistant" };
    const read = ATTEMPTS["read the OpenAPI document"] as Attempt;
    expect(await attacker.page.evaluate(read, target)).toContain("openapi");
    expect(await attacker.frame(`${attacker.origin}/`)).toContain("Attack");
    const before = (await open.call<unknown[]>("POST", "/threads/search", {})).length;
    const write = ATTEMPTS["write from a page with JSON"] as Attempt;
    await attacker.page.evaluate(write, target);
    expect(await open.call<unknown[]>("POST", "/threads/search", {})).toHaveLength(before + 1);
    await open.stop();
  });
});

const POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self' blob:",
  "font-src": "'self'",
  "connect-src": "'self'",
  "worker-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
  "require-trusted-types-for": "'script'",
  "trusted-types": "superstep#worker",
};

function policyOf(headers: Headers): Record<string, string> {
  const directives = (headers.get("content-security-policy") ?? "").split(";").map((text) => text.trim());
  return Object.fromEntries(
    directives.map((text) => [text.split(" ", 1)[0] ?? "", text.slice(text.indexOf(" ") + 1)]),
  );
}
