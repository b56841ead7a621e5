/** A model that streams slowly: a server that speaks OpenAI's wire. It writes mails for `email_assistant`, one for each answer. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import type { Json, JsonObject } from "../src/api/json.ts";
import { pause } from "./lab.ts";

export interface SlowModelOptions {
  /** Tokens of each text. */
  tokens: number;
  /** Between two tokens. */
  delayMs: number;
}

export class SlowModel {
  /** What tests may change while it runs. */
  readonly options: SlowModelOptions;
  /** While it is held, no text ends, however long it gets. */
  isHeld = false;
  /** How many texts it began to write, and how many it finished. */
  begun = 0;
  finished = 0;
  /** How many tokens it wrote of the last text. */
  written = 0;
  readonly #server: Server;

  private constructor(options: SlowModelOptions) {
    this.options = options;
    this.#server = createServer((request, response) => {
      // A caller that goes away is what the tests are about.
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(options: SlowModelOptions): Promise<SlowModel> {
    const model = new SlowModel(options);
    await new Promise<void>((resolve) => model.#server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  /** What the program needs to use it. */
  get env(): Record<string, string> {
    const { port } = this.#server.address() as AddressInfo;
    return { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, OPENAI_API_KEY: "none" };
  }

  readonly name = "openai:slow";

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = (await bodyOf(request)) as JsonObject;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta: Json, finish: string | null = null) => {
      const choices = [{ index: 0, delta, finish_reason: finish }];
      const chunk = { id: "slow", object: "chat.completion.chunk", created: 0, model: "slow", choices };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    if (asked.response_format === undefined) await this.#write(response, send);
    else {
      const form = JSON.stringify(asked.response_format).includes("RouterSchema") ? SORTED : LEARNED;
      send({ role: "assistant", content: JSON.stringify(form) });
      send({}, "stop");
    }
    response.end("data: [DONE]\n\n");
  }

  /** Writes a text token by token, and then a mail that a person has to approve. */
  async #write(response: ServerResponse, send: (delta: Json, finish?: string) => void): Promise<void> {
    this.begun += 1;
    const number = this.begun;
    const start = performance.now();
    send({ role: "assistant", content: "" });
    for (let token = 0; token < this.options.tokens || this.isHeld; token++) {
      if (response.destroyed) return;
      send({ content: tokenOf(number, token) });
      this.written = token + 1;
      // By the clock: what one pause takes too long, the next ones make up for.
      const wait = start + (token + 1) * this.options.delayMs - performance.now();
      if (wait > 1) await pause(wait);
    }
    const call = {
      name: "send_email_tool",
      arguments: JSON.stringify({ response_text: `Draft ${number}.` }),
    };
    send({ tool_calls: [{ index: 0, id: `call_${number}`, type: "function", function: call }] });
    send({}, "tool_calls");
    this.finished += 1;
  }
}

/** Tokens have numbers, so that a lost or doubled one is seen. */
function tokenOf(text: number, token: number): string {
  return `w${text}-${token}${token % 20 === 19 ? "\n\n" : " "}`;
}

const SORTED = {
  quote: "When is the report ready?",
  kind: "question",
  reasoning: "A direct question.",
  classification: "respond",
};
const LEARNED = { chain_of_thought: "", user_preferences: "Name a day and a time.", replaces: 0 };

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Json;
}
