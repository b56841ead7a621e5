// e2e/lab.ts
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createServer2 } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

// e2e/script.ts
function scriptFor(tags, more = []) {
  return {
    price: { input: 400, output: 1600 },
    replies: [
      ...tags.flatMap((tag) => [...interview(tag), ...mail(tag), ...counting(tag), ...pages()]),
      ...more
    ]
  };
}
var usage = (input, output) => ({ input_tokens: input, output_tokens: output });
function interview(tag) {
  const expect2 = `orders ${tag}`;
  return [
    {
      at: "initial",
      expect: expect2,
      text: `You take ten thousand orders ${tag} a day. Is ordering required across customers?`,
      usage: usage(210, 32)
    },
    {
      at: "followup",
      expect: expect2,
      text: "Then one partition for each customer is enough. Who pays for it?",
      usage: usage(290, 29)
    },
    {
      at: "final",
      expect: expect2,
      usage: usage(600, 120),
      json: {
        assumptions: [{ claim: "The load stays near ten thousand orders a day." }],
        components: [
          { claim: "One machine is enough.", file: "notes/b.txt", line: 1, quote: "We have one machine" }
        ],
        alternatives: [{ claim: "A second machine." }],
        decisions: [{ claim: "Use a queue in PostgreSQL." }],
        open_questions: [{ claim: "Who runs it at night?" }]
      }
    }
  ];
}
function mail(tag) {
  const expect2 = `report ${tag}`;
  return [
    {
      at: "triage_router",
      expect: expect2,
      usage: usage(300, 30),
      json: {
        quote: "When is the report ready?",
        reasoning: "A direct question.",
        classification: "respond"
      }
    },
    {
      at: "llm_call",
      expect: expect2,
      usage: usage(520, 60),
      tool_calls: [
        { name: "send_email_tool", args: { response_text: `The report ${tag} is ready on Friday.` } }
      ]
    },
    { at: "llm_call", expect: expect2, usage: usage(580, 12), tool_calls: [{ name: "Done", args: { done: true } }] },
    {
      at: "learn",
      expect: expect2,
      usage: usage(240, 24),
      json: { chain_of_thought: "", user_preferences: "Name a day and a time.", replaces: 0 }
    }
  ];
}
function counting(tag) {
  const expect2 = `sheet ${tag}`;
  const code = [
    "counts = table('Sales').groupby('Product').size()",
    "ws = workbook.create_sheet('Counts')",
    "ws.append(['Product', 'Count'])",
    "for name, count in counts.items():",
    "    ws.append([name, int(count)])"
  ].join("\n");
  return [
    {
      at: "planner_node",
      expect: expect2,
      usage: usage(700, 40),
      tool_calls: [{ name: "PythonInterpreter", args: { code } }]
    },
    { at: "planner_node", expect: expect2, usage: usage(880, 12), text: "Finish: There are four products." }
  ];
}
function pages() {
  const score = (overall) => ({
    completeness: overall,
    clarity: overall,
    depth: overall,
    accuracy: overall
  });
  const at = (step) => `file-structure-${step}`;
  return [
    { at: at("InitialAnalysis"), usage: usage(420, 24), text: "The program begins in `src/main.rs`." },
    { at: at("EvaluateClarity"), usage: usage(300, 20), json: score(62) },
    {
      at: at("GenerateQuestions"),
      usage: usage(310, 40),
      json: { questions: ["What does `pay` do?", "Where would a new module go?"], missing: ["its purpose"] }
    },
    {
      at: at("Refinement-1"),
      usage: usage(700, 60),
      text: "The program begins in `src/main.rs`. Money is taken by `pay` in `src/till.rs`.\n\nA new module goes into `src`."
    },
    { at: at("EvaluateClarity"), usage: usage(330, 20), json: score(90) }
  ];
}

// e2e/shop.ts
import { createServer } from "node:http";
var Shop = class _Shop {
  /** Every request, as `METHOD path`. */
  calls = [];
  #server;
  constructor() {
    this.#server = createServer((request, response) => {
      const { method = "GET", url = "/" } = request;
      this.calls.push(`${method} ${url}`);
      const order = /^\/orders\/(\d+)/.exec(url)?.[1];
      const body = order ? { id: Number(order), status: method === "DELETE" ? "deleted" : "open", cents: 1900 } : { orders: [1001, 1002].map((id) => ({ id, status: "open", cents: 1900 })) };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  }
  static async start() {
    const shop = new _Shop();
    await new Promise((resolve) => shop.#server.listen(0, "127.0.0.1", resolve));
    return shop;
  }
  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }
  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
  /** Its OpenAPI document. */
  document() {
    const ok = { 200: { description: "OK" } };
    const id = { name: "orderId", in: "path", required: true, schema: { type: "integer" } };
    return {
      openapi: "3.0.3",
      info: { title: "Shop", version: "1" },
      servers: [{ url: this.url }],
      paths: {
        "/orders": {
          get: { operationId: "listOrders", tags: ["orders"], summary: "List the orders", responses: ok }
        },
        "/orders/{orderId}": {
          get: {
            operationId: "showOrder",
            tags: ["orders"],
            summary: "Show an order",
            parameters: [id],
            responses: ok
          },
          delete: {
            operationId: "deleteOrder",
            tags: ["orders"],
            summary: "Delete an order",
            parameters: [id],
            responses: ok
          }
        }
      }
    };
  }
};

// e2e/lab.ts
var Lab = class _Lab {
  folder = mkdtempSync(join(tmpdir(), "studio-lab-"));
  url;
  page;
  shop;
  /** API keys by the names of the people. */
  keys = /* @__PURE__ */ new Map();
  #server;
  #program;
  #args;
  #variables;
  #model;
  #cluster;
  #worker;
  constructor(options, port, shop) {
    const program = options.program ?? process.env.ARCHIE;
    if (!program) throw new Error("set ARCHIE to the program that is tested");
    this.#program = program;
    this.shop = shop;
    this.url = `http://127.0.0.1:${port}`;
    this.page = `${this.url}/studio/`;
    const script = join(this.folder, "script.json");
    writeFileSync(script, JSON.stringify(scriptFor(options.tags ?? [], options.replies)));
    this.#model = options.model ?? `script:${script}`;
    this.#variables = options.env ?? {};
    this.#cluster = options.cluster;
    const args = [...options.args ?? [], ...options.cluster?.serverArgs ?? []];
    this.#args = ["serve", "--listen", `127.0.0.1:${port}`, "--model", this.#model, ...args];
  }
  static async start(options = {}) {
    const lab2 = new _Lab(options, options.port ?? await freePort(), await Shop.start());
    lab2.#addShop();
    if (options.people) lab2.#addPeople(options.people);
    if (options.cluster)
      lab2.#worker = await options.cluster.startWorker(lab2.#program, lab2.#model, lab2.#env());
    await lab2.restart();
    return lab2;
  }
  /** Starts the server, again if it was killed. */
  async restart() {
    this.#server = spawn(this.#program, this.#args, {
      env: this.#env(),
      stdio: ["ignore", "ignore", "inherit"]
    });
    for (let attempt = 0; attempt < 600; attempt++) {
      if (await this.#answers()) return;
      await pause(50);
    }
    throw new Error("the server does not answer");
  }
  #addShop() {
    const document = join(this.folder, "shop.json");
    writeFileSync(document, JSON.stringify(this.shop.document()));
    const args = ["api", "add", document, "--name", "shop", "--allow-host", this.shop.url];
    const store = this.#cluster?.storeArgs ?? [];
    execFileSync(this.#program, [...store, ...args], { env: this.#env() });
  }
  #addPeople(people) {
    const policy = join(this.folder, "policy.json");
    writeFileSync(policy, JSON.stringify({ api_keys: true }));
    for (const [name, permissions] of Object.entries(people)) {
      const args = ["keys", "create", "--principal", name, "--permissions", permissions];
      const stdio = ["ignore", "pipe", "ignore"];
      const key = execFileSync(this.#program, args, { env: this.#env(), encoding: "utf8", stdio });
      this.keys.set(name, key.trim());
    }
    this.#args.push("--auth", policy);
  }
  #env() {
    const home = join(this.folder, "home");
    mkdirSync(home, { recursive: true });
    return {
      ...process.env,
      ARCHIE_HOME: home,
      HOME: home,
      ARCHIE_PYTHON: sandboxPython(),
      ...this.#variables
    };
  }
  /** Kills the server, without a chance to end what it does. */
  async kill() {
    const server = this.#server;
    if (!server || server.exitCode !== null) return;
    const gone = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await gone;
  }
  async stop() {
    await this.kill();
    this.#worker?.kill("SIGKILL");
    this.#cluster?.remove();
    this.shop.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
  async call(method, path, json) {
    const body = json === void 0 ? null : JSON.stringify(json);
    const headers = { "content-type": "application/json", ...this.#credentials() };
    const response = await fetch(`${this.url}${path}`, { method, headers, body });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : await response.json();
  }
  async newThread() {
    return (await this.call("POST", "/threads", {})).thread_id;
  }
  async upload(thread, path, body) {
    const url = `${this.url}/superstep/threads/${thread}/files/${path}`;
    const response = await fetch(url, {
      method: "PUT",
      headers: this.#credentials(),
      body: typeof body === "string" ? body : new Uint8Array(body)
    });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  }
  /** Runs an agent until it waits for a person or ends. */
  async wait(thread, assistant, body) {
    return await this.call("POST", `/threads/${thread}/runs/wait`, { assistant_id: assistant, ...body });
  }
  async inbox() {
    return await this.call("GET", "/superstep/inbox?limit=100");
  }
  async state(thread) {
    return await this.call("GET", `/threads/${thread}/state`);
  }
  /** Those of the first person. */
  #credentials() {
    const [key] = this.keys.values();
    return key === void 0 ? {} : { "x-api-key": key };
  }
  async #answers() {
    try {
      return (await fetch(`${this.url}/ok`)).ok;
    } catch {
      return false;
    }
  }
};
var begin = {
  async analyze(lab2, tag) {
    const thread = await lab2.newThread();
    await lab2.upload(thread, "notes/a.md", `Ten thousand orders ${tag} a day.
`);
    await lab2.upload(thread, "notes/b.txt", "We have one machine.\n");
    await lab2.wait(thread, "analyze", {
      input: { userInput: `analyze: Choose a queue for orders ${tag}`, noteFiles: ["notes"] }
    });
    return thread;
  },
  async mail(lab2, tag) {
    const thread = await lab2.newThread();
    await lab2.wait(thread, "email_assistant", { input: { email_input: mailOf(tag) } });
    return thread;
  },
  async sheet(lab2, tag) {
    const thread = await lab2.newThread();
    await lab2.upload(thread, "sales.xlsx", workbook());
    const task = { workbook: "sales.xlsx", instruction: `Count each Product in a new sheet ${tag}` };
    await lab2.wait(thread, "sheet", { input: { task } });
    return thread;
  },
  async atris(lab2, _tag) {
    const thread = await lab2.newThread();
    await lab2.wait(thread, "atris", { input: { query: "@shop delete order 1001" } });
    return thread;
  },
  async docs(lab2, _tag) {
    const thread = await lab2.newThread();
    await lab2.upload(thread, "shop/README.md", "# Shop\n");
    await lab2.upload(thread, "shop/src/main.rs", "mod till;\n\nfn main() {\n    till::pay(3);\n}\n");
    await lab2.upload(thread, "shop/src/till.rs", 'pub fn pay(cents: u32) {\n    println!("{cents}");\n}\n');
    const task = { folder: "shop", agents: ["file-structure"], gate: true };
    await lab2.wait(thread, "docs", { input: { task } });
    return thread;
  }
};
function mailOf(tag) {
  return {
    id: `mail-${tag}`,
    message_id: `mail-${tag}@example.com`,
    from: "Bob <bob@example.com>",
    to: "alice@example.com",
    account: "alice@example.com",
    subject: `The report ${tag}?`,
    page_content: "When is the report ready?"
  };
}
function sandboxPython() {
  const given = process.env.ARCHIE_PYTHON;
  if (given) return given;
  const services = process.env.SERVICES ?? join(homedir(), ".cache/superstep/services");
  const sandbox = JSON.parse(readFileSync(join(services, "sandbox.json"), "utf8"));
  const program = sandbox.nodes[0]?.program;
  if (!program) throw new Error("there is no Python; run `cargo xtask services up`");
  return program;
}
function workbook() {
  return readFileSync(workbookPath());
}
function workbookPath() {
  return join(import.meta.dirname, "../../apps/archie/src/commands/demo/sales.xlsx");
}
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
async function freePort() {
  return await new Promise((resolve, reject) => {
    const server = createServer2();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(
        () => typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port"))
      );
    });
  });
}

// e2e/browser.ts
import { readFileSync as readFileSync2 } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { expect } from "vitest";
var axe = readFileSync2(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
function isExcepted(rule, element) {
  if (rule === "target-size") return element?.closest(".react-flow") != null;
  return rule === "label-content-name-mismatch" && element?.role === "treeitem";
}
var CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
async function openBrowser() {
  return await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-dev-shm-usage"]
  });
}
var WatchedPage = class _WatchedPage {
  problems = [];
  context;
  page;
  constructor(context, page) {
    this.context = context;
    this.page = page;
  }
  static async open(browser2, url, options = {}) {
    const context = await browser2.newContext({
      colorScheme: options.theme ?? "light",
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      reducedMotion: "reduce"
    });
    const watched = new _WatchedPage(context, await context.newPage());
    watched.#watch(new URL(url).origin);
    await watched.page.goto(url);
    return watched;
  }
  #watch(origin) {
    this.page.on("pageerror", (error) => this.problems.push(`error: ${error.message}`));
    this.page.on("console", (message) => {
      if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text()))
        this.problems.push(message.text());
    });
    this.page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(origin) && !url.startsWith("blob:")) this.problems.push(`request to ${url}`);
    });
  }
  async close() {
    await this.context.close();
    expect(this.problems).toEqual([]);
  }
  /** Fails if the view violates WCAG 2.2 AA as far as a program can tell. */
  async expectAccessible() {
    expect(await this.violations()).toEqual([]);
  }
  /** Returns what axe finds, each with the first elements. */
  async violations() {
    const client = await this.context.newCDPSession(this.page);
    const { frameTree } = await client.send("Page.getFrameTree");
    const world = await client.send("Page.createIsolatedWorld", {
      frameId: frameTree.frame.id,
      worldName: "axe"
    });
    const contextId = world.executionContextId;
    await client.send("Runtime.evaluate", { expression: axe, contextId });
    const expression = `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
      .then((found) => JSON.stringify(found.violations
        .map((one) => [one.id, one.nodes.filter((node) => !(${isExcepted})(one.id, document.querySelector(node.target[0]))).slice(0, 3).map((node) => node.html.slice(0, 160) + " " + (node.any[0]?.message ?? ""))])
        .filter(([, nodes]) => nodes.length > 0)))`;
    const result = await client.send("Runtime.evaluate", { expression, contextId, awaitPromise: true });
    await client.detach();
    return JSON.parse(String(result.result.value));
  }
};

// ../../../tmp/net-shots.ts
var lab = await Lab.start({ tags: ["aa", "bb"], people: { "alice@example.com": "read,run,answer,edit,admin", "bob@example.com": "read,run,answer,edit,admin" }, program: "/tmp/bin/archie" });
var browser = await openBrowser();
try {
  const thread = await begin.analyze(lab, "aa");
  await begin.mail(lab, "bb");
  const { page } = await WatchedPage.open(browser, lab.page);
  await page.getByLabel("API key").fill(lab.keys.get("alice@example.com") ?? "");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("link", { name: /\baa\b/ }).click();
  await page.getByRole("textbox", { name: "Your answer" }).fill("Half an answer");
  const raised = await lab.call("GET", `/superstep/threads/${thread}/interrupts`);
  await fetch(`${lab.url}/threads/${thread}/runs`, { method: "POST", headers: { "content-type": "application/json", "x-api-key": lab.keys.get("bob@example.com") ?? "" }, body: JSON.stringify({ assistant_id: "analyze", command: { resume: { [raised[0].id]: "All of it" } } }) });
  await page.getByRole("heading", { name: /was first/ }).waitFor();
  await page.getByRole("heading", { name: /was first/ }).scrollIntoViewIfNeeded();
  await page.screenshot({ path: "/tmp/network/first.png" });
  await lab.kill();
  await page.locator(".banner").waitFor();
  await page.screenshot({ path: "/tmp/network/away.png" });
} finally {
  await browser.close();
  await lab.stop();
}
