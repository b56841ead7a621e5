/** A server with random programs of the simulator, and threads of them with answers, edits and forks. */

import type { Json } from "../src/api/json.ts";
import type { Thread, ThreadState } from "../src/api/types.ts";
import type { StoredEntry } from "./log_reading.ts";
import { SuitesServer } from "./suites_server.ts";

/** Random numbers that are the same for the same seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2654435761 + 1;
  }

  /** A whole number from 0 up to `end`, without it. */
  below(end: number): number {
    // Mulberry32.
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end;
  }

  pick<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)];
    if (found === undefined) throw new Error("nothing to choose from");
    return found;
  }
}

export class SimulatedServer {
  readonly #server: SuitesServer;

  private constructor(server: SuitesServer) {
    this.#server = server;
  }

  static async start(): Promise<SimulatedServer> {
    return new SimulatedServer(await SuitesServer.start("simulator"));
  }

  get url(): string {
    return this.#server.url;
  }

  stop(): void {
    this.#server.stop();
  }

  async call<T>(method: string, path: string, json?: unknown): Promise<T> {
    return await this.#server.call(method, path, json);
  }

  async log(thread: string): Promise<StoredEntry[]> {
    return await this.call("GET", `/internal/log/${thread}`);
  }

  async history(thread: string): Promise<ThreadState[]> {
    return await this.call("POST", `/threads/${thread}/history`, { limit: 1000 });
  }

  /** Makes a thread of the program of a seed: an input, and as another number says, answers, edits, forks and other inputs. */
  async makeThread(seed: number, happens: number): Promise<string> {
    const random = new Random(happens);
    const { thread_id: thread } = await this.call<Thread>("POST", "/threads", {});
    const run = { thread, assistant: `sim-${seed}` };
    await this.#run(run, { input: inputOf(1) });
    await this.#answer(run, random.below(5));
    for (let deed = random.below(4); deed > 0; deed--) {
      await this.#act(run, random);
      await this.#answer(run, random.below(4));
    }
    return thread;
  }

  async #run({ thread, assistant }: Simulated, body: Record<string, Json>): Promise<void> {
    await this.call("POST", `/threads/${thread}/runs/wait`, { assistant_id: assistant, ...body });
  }

  /** Answers what is asked, and passes breakpoints, at most so many times. */
  async #answer(run: Simulated, times: number): Promise<void> {
    for (let round = 0; round < times; round++) {
      const state = await this.call<ThreadState>("GET", `/threads/${run.thread}/state`);
      const { status } = await this.call<Thread>("GET", `/threads/${run.thread}`);
      if (status !== "interrupted") return;
      const ids = state.interrupts.map(({ id }) => id);
      if (ids.length === 0) await this.#run(run, { input: null });
      else
        await this.#run(run, {
          command: { resume: Object.fromEntries(ids.map((id, at) => [id, 100 + at])) },
        });
    }
  }

  async #act(run: Simulated, random: Random): Promise<void> {
    const history = await this.history(run.thread);
    const at = random.pick(history);
    try {
      switch (random.below(4)) {
        case 0:
          return await this.#run(run, { input: inputOf(2) });
        case 1:
          return await this.#run(run, { input: null, checkpoint_id: at.checkpoint_id ?? null });
        case 2:
          return await this.#run(run, { input: inputOf(3), checkpoint_id: at.checkpoint_id ?? null });
        default:
          // At the newest checkpoint: what an edit of an older one wrote is in a snapshot and not in the log.
          await this.call("POST", `/threads/${run.thread}/state`, { values: { log: ["edited"], s0: 7 } });
      }
    } catch (error) {
      // Not everything can be done everywhere: nothing is left to run, or nobody can say which node wrote an edit.
      if (!/: 4\d\d /.test(String(error))) throw error;
    }
  }
}

interface Simulated {
  thread: string;
  assistant: string;
}

function inputOf(number: number): Json {
  return { log: [`input ${number}`], total: number, turns: { "=inputs": 1 } };
}
