/** The real program, for tests in the browser: `archie serve` with a scripted model and a folder of its own. */

import { type ChildProcess, execFile, execFileSync, type StdioOptions, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import type { Json } from "../src/api/json.ts";
import type { InboxItem, Thread, ThreadState } from "../src/api/types.ts";
import type { Cluster } from "./cluster.ts";
import { scriptFor } from "./script.ts";
import { Shop } from "./shop.ts";

export interface LabOptions {
  /** The program; by default that of the environment. */
  program?: string;
  /** Each agent can be started once with each tag. */
  tags?: string[];
  /** Further replies of the model. */
  replies?: Json[];
  args?: string[];
  port?: number;
  /** A model instead of the scripted one. */
  model?: string;
  env?: Record<string, string>;
  /** Those who get an API key, with their permissions. Without them, the server does not ask who its callers are. */
  people?: Record<string, string>;
  /** Lets the worker of a cluster run the threads; by default, the server runs them itself. */
  cluster?: Cluster;
}

export class Lab {
  readonly folder = mkdtempSync(join(tmpdir(), "studio-lab-"));
  readonly url: string;
  readonly page: string;
  readonly shop: Shop;
  /** API keys by the names of the people. */
  readonly keys = new Map<string, string>();
  #server: ChildProcess | undefined;
  readonly #program: string;
  readonly #args: string[];
  readonly #variables: Record<string, string>;
  readonly #model: string;
  readonly #cluster: Cluster | undefined;
  #worker: ChildProcess | undefined;

  private constructor(
    options: LabOptions,
    port: number,
    /** The API that `atris` asks. */
    shop: Shop,
  ) {
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
    const args = [...(options.args ?? []), ...(options.cluster?.serverArgs ?? [])];
    this.#args = ["serve", "--listen", `127.0.0.1:${port}`, "--model", this.#model, ...args];
  }

  static async start(options: LabOptions = {}): Promise<Lab> {
    const lab = new Lab(options, options.port ?? (await freePort()), await Shop.start());
    lab.#addShop();
    if (options.people) lab.#addPeople(options.people);
    if (options.cluster)
      lab.#worker = await options.cluster.startWorker(lab.#program, lab.#model, lab.#env());
    await lab.restart();
    return lab;
  }

  /** Starts the server, again if it was killed. */
  async restart(): Promise<void> {
    this.#server = spawn(this.#program, this.#args, {
      env: this.#env(),
      stdio: ["ignore", "ignore", "inherit"],
    });
    for (let attempt = 0; attempt < 600; attempt++) {
      if (await this.#answers()) return;
      await pause(50);
    }
    throw new Error("the server does not answer");
  }

  #addShop(): void {
    const document = join(this.folder, "shop.json");
    writeFileSync(document, JSON.stringify(this.shop.document()));
    const args = ["api", "add", document, "--name", "shop", "--allow-host", this.shop.url];
    const store = this.#cluster?.storeArgs ?? [];
    execFileSync(this.#program, [...store, ...args], { env: this.#env() });
  }

  #addPeople(people: Record<string, string>): void {
    const policy = join(this.folder, "policy.json");
    writeFileSync(policy, JSON.stringify({ api_keys: true }));
    for (const [name, permissions] of Object.entries(people)) {
      const args = ["keys", "create", "--principal", name, "--permissions", permissions];
      const stdio: StdioOptions = ["ignore", "pipe", "ignore"];
      const key = execFileSync(this.#program, args, { env: this.#env(), encoding: "utf8", stdio });
      this.keys.set(name, key.trim());
    }
    this.#args.push("--auth", policy);
  }

  #env(): NodeJS.ProcessEnv {
    const home = join(this.folder, "home");
    mkdirSync(home, { recursive: true });
    return {
      ...process.env,
      ARCHIE_HOME: home,
      HOME: home,
      ARCHIE_PYTHON: sandboxPython(),
      ...this.#variables,
    };
  }

  /** Runs another command of the program, on the same threads, and returns what it prints. */
  async archie(...args: string[]): Promise<string> {
    const store = this.#cluster?.storeArgs ?? [];
    const all = ["--model", this.#model, ...store, ...args];
    // Not the blocking form: the API that `atris` asks is in this process.
    return (await promisify(execFile)(this.#program, all, { env: this.#env() })).stdout;
  }

  /** Kills the server, without a chance to end what it does. */
  async kill(): Promise<void> {
    const server = this.#server;
    // A process that a signal ended has no exit code.
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const gone = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    this.#worker?.kill("SIGKILL");
    this.#cluster?.remove();
    this.shop.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async call<T>(method: string, path: string, json?: unknown): Promise<T> {
    const body = json === undefined ? null : JSON.stringify(json);
    const headers = { "content-type": "application/json", ...this.#credentials() };
    const response = await fetch(`${this.url}${path}`, { method, headers, body });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (response.status === 204 ? null : await response.json()) as T;
  }

  async newThread(): Promise<string> {
    return (await this.call<Thread>("POST", "/threads", {})).thread_id;
  }

  async upload(thread: string, path: string, body: string | Buffer): Promise<void> {
    const url = `${this.url}/superstep/threads/${thread}/files/${path}`;
    const response = await fetch(url, {
      method: "PUT",
      headers: this.#credentials(),
      body: typeof body === "string" ? body : new Uint8Array(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  }

  /** Runs an agent until it waits for a person or ends. */
  async wait(thread: string, assistant: string, body: { input?: Json; command?: Json }): Promise<Json> {
    return await this.call("POST", `/threads/${thread}/runs/wait`, { assistant_id: assistant, ...body });
  }

  async inbox(): Promise<InboxItem[]> {
    return await this.call("GET", "/superstep/inbox?limit=100");
  }

  async state(thread: string): Promise<ThreadState> {
    return await this.call("GET", `/threads/${thread}/state`);
  }

  /** Those of the first person. */
  #credentials(): Record<string, string> {
    const [key] = this.keys.values();
    return key === undefined ? {} : { "x-api-key": key };
  }

  async #answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/ok`)).ok;
    } catch {
      return false;
    }
  }
}

/** Starts an agent over the API, up to its first interrupt, and returns the thread. */
export const begin = {
  async analyze(lab: Lab, tag: string): Promise<string> {
    const thread = await lab.newThread();
    await lab.upload(thread, "notes/a.md", `Ten thousand orders ${tag} a day.\n`);
    await lab.upload(thread, "notes/b.txt", "We have one machine.\n");
    await lab.wait(thread, "analyze", {
      input: { userInput: `analyze: Choose a queue for orders ${tag}`, noteFiles: ["notes"] },
    });
    return thread;
  },

  async mail(lab: Lab, tag: string): Promise<string> {
    const thread = await lab.newThread();
    await lab.wait(thread, "email_assistant", { input: { email_input: mailOf(tag) } });
    return thread;
  },

  async sheet(lab: Lab, tag: string): Promise<string> {
    const thread = await lab.newThread();
    await lab.upload(thread, "sales.xlsx", workbook());
    const task = { workbook: "sales.xlsx", instruction: `Count each Product in a new sheet ${tag}` };
    await lab.wait(thread, "sheet", { input: { task } });
    return thread;
  },

  async atris(lab: Lab, _tag: string): Promise<string> {
    const thread = await lab.newThread();
    await lab.wait(thread, "atris", { input: { query: "@shop delete order 1001" } });
    return thread;
  },

  async docs(lab: Lab, _tag: string): Promise<string> {
    const thread = await lab.newThread();
    await lab.upload(thread, "shop/README.md", "# Shop\n");
    await lab.upload(thread, "shop/src/main.rs", "mod till;\n\nfn main() {\n    till::pay(3);\n}\n");
    await lab.upload(thread, "shop/src/till.rs", 'pub fn pay(cents: u32) {\n    println!("{cents}");\n}\n');
    const task = { folder: "shop", agents: ["file-structure"], gate: true };
    await lab.wait(thread, "docs", { input: { task } });
    return thread;
  },
};

export function mailOf(tag: string): Json {
  return {
    id: `mail-${tag}`,
    message_id: `mail-${tag}@example.com`,
    from: "Bob <bob@example.com>",
    to: "alice@example.com",
    account: "alice@example.com",
    subject: `The report ${tag}?`,
    page_content: "When is the report ready?",
  };
}

/** The Python that `sheet` runs code with, from `cargo xtask services up`. */
function sandboxPython(): string {
  const given = process.env.ARCHIE_PYTHON;
  if (given) return given;
  const services = process.env.SERVICES ?? join(homedir(), ".cache/superstep/services");
  const sandbox = JSON.parse(readFileSync(join(services, "sandbox.json"), "utf8")) as {
    nodes: { program: string }[];
  };
  const program = sandbox.nodes[0]?.program;
  if (!program) throw new Error("there is no Python; run `cargo xtask services up`");
  return program;
}

/** The workbook of the demo: sales of four products. */
export function workbook(): Buffer {
  return readFileSync(workbookPath());
}

export function workbookPath(): string {
  return join(import.meta.dirname, "../../apps/archie/src/commands/demo/sales.xlsx");
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
