/** The server with graphs of `testing/server-suites`, for what the program's own agents do not have. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { freePort, pause } from "./lab.ts";

/** It is built next to the program that is tested. */
const PROGRAM = process.env.SERVER_SUITES ?? join(dirname(process.env.ARCHIE ?? ""), "server-suites");

export class SuitesServer {
  readonly #folder = mkdtempSync(join(tmpdir(), "studio-suites-"));
  readonly url: string;
  readonly page: string;
  #server: ChildProcess | undefined;

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.page = `${this.url}/studio/`;
  }

  /** Starts it with one set of graphs. */
  static async start(graphs: "apps" | "javascript" | "simulator"): Promise<SuitesServer> {
    if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing; run \`cargo build -p server-suites\``);
    const port = await freePort();
    const server = new SuitesServer(port);
    const store = join(server.#folder, "threads.db");
    const args = ["serve", "--store", store, "--address", `127.0.0.1:${port}`, "--graphs", graphs];
    server.#server = spawn(PROGRAM, args, { stdio: ["ignore", "ignore", "inherit"] });
    const answers = () =>
      fetch(`${server.url}/ok`).then(
        ({ ok }) => ok,
        () => false,
      );
    for (let attempt = 0; attempt < 600; attempt++) {
      if (await answers()) return server;
      await pause(50);
    }
    throw new Error("the server does not answer");
  }

  stop(): void {
    this.#server?.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async call<T>(method: string, path: string, json?: unknown): Promise<T> {
    const body = json === undefined ? null : JSON.stringify(json);
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${this.url}${path}`, { method, headers, body });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }
}
