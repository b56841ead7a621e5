/**
 * The real server with some of its answers replaced by larger ones, for sizes that would take the agents hours to reach. The large
 * answers are made from real ones, so they have the same shape.
 */

import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Answer {
  json: unknown;
  headers?: Record<string, string>;
}

type Stub = { method: string; path: RegExp; answer: (url: URL) => Answer };

export class LargeServer {
  /** Bytes that were answered, by method and path. */
  readonly sent: { path: string; bytes: number }[] = [];
  readonly #stubs: Stub[] = [];
  readonly #server: Server;
  readonly #upstream: URL;

  private constructor(upstream: string) {
    this.#upstream = new URL(upstream);
    this.#server = createServer((incoming, outgoing) => this.#handle(incoming, outgoing));
  }

  static async start(upstream: string): Promise<LargeServer> {
    const server = new LargeServer(upstream);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stub(method: string, path: RegExp, answer: (url: URL) => Answer): void {
    this.#stubs.unshift({ method, path, answer });
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const url = new URL(incoming.url ?? "/", this.url);
    const stub = this.#stubs.find(
      ({ method, path }) => method === incoming.method && path.test(url.pathname),
    );
    if (!stub) {
      this.#forward(incoming, outgoing, url);
      return;
    }
    const { json, headers } = stub.answer(url);
    const body = typeof json === "string" ? json : JSON.stringify(json);
    this.#count(incoming, url, body.length);
    outgoing.writeHead(200, { "content-type": "application/json", ...headers }).end(body);
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse, url: URL): void {
    const { hostname, port } = this.#upstream;
    const headers = { ...incoming.headers, host: this.#upstream.host };
    const path = url.pathname + url.search;
    const { method } = incoming;
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.on("data", (chunk: Buffer) => this.#count(incoming, url, chunk.length));
      response.pipe(outgoing);
    });
    sent.on("error", () => outgoing.destroy());
    outgoing.on("close", () => sent.destroy());
    incoming.pipe(sent);
  }

  #count({ method }: IncomingMessage, { pathname }: URL, bytes: number): void {
    this.sent.push({ path: `${method} ${pathname}`, bytes });
  }
}
