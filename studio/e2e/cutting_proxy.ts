/** A network that tests can cut: a TCP proxy between the page and the server. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

export class CuttingProxy {
  /** While it is down, it refuses connections. */
  isDown = false;
  /** While it is silent, connections stay, and nothing gets through. */
  isSilent = false;
  #losses: { request: RegExp; left: number }[] = [];
  /** How many responses were lost. */
  lost = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(target: number) {
    this.#server = createServer((client) => {
      if (this.isDown) return void client.destroy();
      const server = connect(target, "127.0.0.1");
      this.#join(client, server);
    });
  }

  static async start(target: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(Number(new URL(target).port));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Loses responses to requests that begin so; the requests reach the server. Browsers themselves repeat a request on a connection
   * that they had before, so a page notices only if several are lost.
   */
  lose(request: RegExp, times: number): void {
    this.#losses.push({ request, left: times });
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  stop(): void {
    this.isDown = true;
    this.cut();
    this.#server.close();
  }

  #join(client: Socket, server: Socket): void {
    let isLost = false;
    client.on("data", (chunk) => {
      const loss = this.#losses.find(
        ({ request, left }) => left > 0 && request.test(chunk.toString("latin1")),
      );
      if (loss) loss.left -= 1;
      isLost ||= loss !== undefined;
      if (!this.isSilent) server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (this.isSilent) return;
      if (!isLost) return void client.write(chunk);
      this.lost += 1;
      client.resetAndDestroy();
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      // A reset is what a cut looks like from the other side.
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
