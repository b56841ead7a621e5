/** Restate and PostgreSQL of `cargo xtask services up`, for tests of threads that a worker runs. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { freePort } from "./lab.ts";

/** A database of its own, and the turn of this test: Restate has one worker at a time under a service's name. */
export class Cluster {
  readonly #database = `studio_${process.pid}_${Date.now()}`;
  readonly #turn: ChildProcess;
  readonly #postgres = serviceAddress("postgres", "url");

  private constructor(turn: ChildProcess) {
    this.#turn = turn;
    this.#psql(`CREATE DATABASE ${this.#database}`);
  }

  static async start(): Promise<Cluster> {
    return new Cluster(await takeTurn());
  }

  /** Where threads, and what commands keep, are stored. */
  get storeArgs(): string[] {
    return ["--store", this.#postgres.replace(/\/[^/]*$/, `/${this.#database}`)];
  }

  get serverArgs(): string[] {
    return [...this.storeArgs, "--engine", `restate:${serviceAddress("restate", "ingress")}`];
  }

  /** Starts a worker, and waits until Restate knows it. */
  async startWorker(program: string, model: string, env: NodeJS.ProcessEnv): Promise<ChildProcess> {
    const listen = `127.0.0.1:${await freePort()}`;
    const admin = serviceAddress("restate", "admin");
    const args = ["worker", ...this.storeArgs, "--model", model, "--listen", listen, "--register", admin];
    const worker = spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    await new Promise<void>((resolve, reject) => {
      worker.once("exit", () => reject(new Error("the worker ended before Restate knew it")));
      createInterface(worker.stdout).on("line", (line) => line.endsWith("knows") && resolve());
    });
    return worker;
  }

  remove(): void {
    this.#psql(`DROP DATABASE IF EXISTS ${this.#database} WITH (FORCE)`);
    this.#turn.stdin?.end();
  }

  #psql(statement: string): void {
    execFileSync("psql", [this.#postgres, "--quiet", "--command", statement]);
  }
}

/** Waits for the lock that the tests of the workers take, too. It is released when this process ends. */
async function takeTurn(): Promise<ChildProcess> {
  const lock = join(tmpdir(), "superstep-restate-tests.lock");
  const turn = spawn("flock", [lock, "sh", "-c", "echo; cat"], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise((resolve) => turn.stdout.once("data", resolve));
  return turn;
}

/** What the services say about the first node of one of them. */
function serviceAddress(name: string, what: string): string {
  const given = process.env[`SUPERSTEP_${name.toUpperCase()}_${what.toUpperCase()}`];
  if (given) return given;
  const services = process.env.SERVICES ?? join(homedir(), ".cache/superstep/services");
  const { nodes } = JSON.parse(readFileSync(join(services, `${name}.json`), "utf8")) as {
    nodes: Record<string, string>[];
  };
  const address = nodes[0]?.[what];
  if (!address) throw new Error(`${name} does not run; run \`cargo xtask services up ${name}\``);
  return address;
}
