/** A small API for `atris`, which counts what it is asked to do. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class Shop {
  /** Every request, as `METHOD path`. */
  readonly calls: string[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const { method = "GET", url = "/" } = request;
      this.calls.push(`${method} ${url}`);
      const order = /^\/orders\/(\d+)/.exec(url)?.[1];
      const body = order
        ? { id: Number(order), status: method === "DELETE" ? "deleted" : "open", cents: 1900 }
        : { orders: [1001, 1002].map((id) => ({ id, status: "open", cents: 1900 })) };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  }

  static async start(): Promise<Shop> {
    const shop = new Shop();
    await new Promise<void>((resolve) => shop.#server.listen(0, "127.0.0.1", resolve));
    return shop;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Its OpenAPI document. */
  document(): object {
    const ok = { 200: { description: "OK" } };
    const id = { name: "orderId", in: "path", required: true, schema: { type: "integer" } };
    return {
      openapi: "3.0.3",
      info: { title: "Shop", version: "1" },
      servers: [{ url: this.url }],
      paths: {
        "/orders": {
          get: { operationId: "listOrders", tags: ["orders"], summary: "List the orders", responses: ok },
        },
        "/orders/{orderId}": {
          get: {
            operationId: "showOrder",
            tags: ["orders"],
            summary: "Show an order",
            parameters: [id],
            responses: ok,
          },
          delete: {
            operationId: "deleteOrder",
            tags: ["orders"],
            summary: "Delete an order",
            parameters: [id],
            responses: ok,
          },
        },
      },
    };
  }
}
