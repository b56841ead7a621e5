/** A page of another site that a person has open, and what it tries to do to the server on the person's machine. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { type Browser, chromium, type Page } from "playwright-core";

import { CHROMIUM } from "./browser.ts";

/** A site that is reached by the name `example.com`, in a browser that finds that name on this machine. */
export class Attacker {
  readonly #server: Server;
  readonly browser: Browser;
  readonly page: Page;

  private constructor(server: Server, browser: Browser, page: Page) {
    this.#server = server;
    this.browser = browser;
    this.page = page;
  }

  static async start(): Promise<Attacker> {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Attack</title>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const args = [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--host-resolver-rules=MAP example.com 127.0.0.1",
    ];
    const browser = await chromium.launch({ executablePath: CHROMIUM, args });
    const page = await browser.newPage();
    await page.goto(`http://example.com:${(server.address() as AddressInfo).port}/`);
    return new Attacker(server, browser, page);
  }

  get origin(): string {
    return new URL(this.page.url()).origin;
  }

  /** Leads a person to an address with a link, and returns what they see there. */
  async leadTo(address: string): Promise<string> {
    const opening = this.page.context().waitForEvent("page");
    await this.page.evaluate((to) => {
      const link = document.body.appendChild(document.createElement("a"));
      Object.assign(link, { href: to, target: "_blank", rel: "noopener" });
      link.click();
    }, address);
    const opened = await opening;
    await opened.waitForLoadState();
    await opened.waitForFunction(() => document.body.textContent !== "");
    const text = (await opened.textContent("body")) ?? "";
    await opened.close();
    return text;
  }

  /** Puts an address into a frame of its page, and returns what a person sees there. */
  async frame(address: string): Promise<string> {
    await this.page.evaluate(async (to) => {
      const frame = document.body.appendChild(document.createElement("iframe"));
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      frame.src = to;
      await loaded;
    }, address);
    const shown = this.page.frames().at(-1);
    await this.page.waitForTimeout(500);
    return (await shown?.textContent("html")) ?? "";
  }

  /** The same site, by another name of the server: what an attacker does who controls the name `example.com`. */
  async rebound(port: string, path: string): Promise<{ status: number; text: string }> {
    const page = await this.browser.newPage();
    const response = await page.goto(`http://example.com:${port}${path}`);
    const found = { status: response?.status() ?? 0, text: (await page.textContent("body")) ?? "" };
    await page.close();
    return found;
  }

  async stop(): Promise<void> {
    await this.browser.close();
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** What attempts aim at: a server and a thread of it that waits for an answer. */
export interface Target {
  url: string;
  thread: string;
  assistant: string;
}

/** An attempt runs in the page of the attacker, so it uses nothing from outside. It returns what it could read; `undefined` is good. */
export type Attempt = (target: Target) => Promise<unknown>;

/** Attempts by their names. Each ends, whether it succeeded or not. */
export const ATTEMPTS: Readonly<Record<string, Attempt>> = {
  "read with fetch": ({ url }) =>
    fetch(`${url}/superstep/inbox`).then(
      (response) => response.text(),
      () => undefined,
    ),
  "read the OpenAPI document": ({ url }) =>
    fetch(`${url}/openapi.json`).then(
      (response) => response.text(),
      () => undefined,
    ),
  "answer with JSON": ({ url, thread, assistant }) =>
    fetch(`${url}/threads/${thread}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ assistant_id: assistant, command: { resume: [{ type: "accept" }] } }),
    }).then(
      (response) => response.text(),
      () => undefined,
    ),
  "answer with JSON as text, without asking": ({ url, thread, assistant }) =>
    fetch(`${url}/threads/${thread}/runs`, {
      method: "POST",
      mode: "no-cors",
      headers: { "content-type": "text/plain" },
      body: JSON.stringify({ assistant_id: assistant, command: { resume: [{ type: "accept" }] } }),
    }).then((response) => (response.type === "opaque" ? undefined : response.text())),
  "create a thread without a body": ({ url }) =>
    fetch(`${url}/threads`, { method: "POST", mode: "no-cors" }).then(
      (response) => (response.type === "opaque" ? undefined : response.text()),
      () => undefined,
    ),
  "create a thread with a blob of JSON": ({ url }) =>
    fetch(`${url}/threads`, {
      method: "POST",
      mode: "no-cors",
      body: new Blob(["{}"], { type: "application/json" }),
    }).then(
      (response) => (response.type === "opaque" ? undefined : response.text()),
      () => undefined,
    ),
  "write from a page with JSON": ({ url }) =>
    fetch(`${url}/threads`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    }).then(
      (response) => response.text(),
      () => undefined,
    ),
  "create a thread with a beacon": async ({ url }) => {
    navigator.sendBeacon(`${url}/threads`, new Blob(["{}"], { type: "text/plain" }));
    await new Promise((resolve) => setTimeout(resolve, 200));
  },
  "delete a thread": ({ url, thread }) =>
    fetch(`${url}/threads/${thread}`, { method: "DELETE" }).then(
      (response) => response.text(),
      () => undefined,
    ),
  "delete a thread with another method named in a header": ({ url, thread }) =>
    fetch(`${url}/threads/${thread}`, {
      method: "POST",
      headers: { "x-http-method-override": "DELETE", "x-method-override": "DELETE" },
    }).then(
      (response) => response.text(),
      () => undefined,
    ),
  "delete a thread with another method named in the address": ({ url, thread }) =>
    fetch(`${url}/threads/${thread}?_method=DELETE`, {
      method: "POST",
      mode: "no-cors",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "_method=DELETE",
    }).then(
      (response) => (response.type === "opaque" ? undefined : response.text()),
      () => undefined,
    ),
  "write to the store": ({ url }) =>
    fetch(`${url}/store/items`, {
      method: "PUT",
      body: JSON.stringify({ namespace: ["attack"], key: "a", value: {} }),
    }).then(
      (response) => response.text(),
      () => undefined,
    ),
  "create a thread with a form": async ({ url }) => {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.name = "sink";
    const form = document.body.appendChild(document.createElement("form"));
    // A body that is JSON, in the form that pages may send without asking.
    Object.assign(form, { action: `${url}/threads`, method: "post", enctype: "text/plain", target: "sink" });
    const field = form.appendChild(document.createElement("input"));
    Object.assign(field, { name: '{"metadata":{"a":"', value: '"}}' });
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    form.submit();
    await Promise.race([loaded, new Promise((resolve) => setTimeout(resolve, 1000))]);
    return frame.contentDocument?.body?.textContent || undefined;
  },
  "upload a file with a form": async ({ url, thread }) => {
    const body = new FormData();
    body.append("file", new Blob(["<script></script>"], { type: "text/html" }), "a.html");
    const to = `${url}/superstep/threads/${thread}/files/a.html`;
    await fetch(to, { method: "POST", mode: "no-cors", body }).catch(() => undefined);
  },
  "open Studio and reach into it": async ({ url }) => {
    const opened = window.open(`${url}/studio/`);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    try {
      const isCut = opened === null || opened.closed;
      opened?.postMessage("approve", "*");
      return isCut ? undefined : opened.document.body.textContent;
    } catch {
      return "the window is within reach";
    }
  },
  "load the inbox as a script": ({ url }) =>
    new Promise((resolve) => {
      const script = document.body.appendChild(document.createElement("script"));
      script.onload = () => resolve("loaded");
      script.onerror = () => resolve(undefined);
      script.src = `${url}/superstep/inbox`;
    }),
  "load a file of Studio as a script": ({ url }) =>
    new Promise((resolve) => {
      const script = document.body.appendChild(document.createElement("script"));
      script.onload = () => resolve("loaded");
      script.onerror = () => resolve(undefined);
      script.src = `${url}/studio/icon.svg`;
    }),
  "load an image, to see whether the server is there": ({ url }) =>
    new Promise((resolve) => {
      const image = document.body.appendChild(document.createElement("img"));
      image.onload = () => resolve("loaded");
      image.onerror = () => resolve(undefined);
      image.src = `${url}/studio/icon.svg`;
    }),
  "follow a thread with an event source": ({ url, thread }) =>
    new Promise((resolve) => {
      const source = new EventSource(`${url}/threads/${thread}/stream`);
      const end = (found: unknown) => {
        source.close();
        resolve(found);
      };
      source.onopen = () => end("open");
      source.onerror = () => end(undefined);
    }),
  "command a thread over a WebSocket": ({ url, thread }) =>
    new Promise((resolve) => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${thread}/stream/events`);
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve(undefined);
    }),
  "write from a frame without an origin": async ({ url }) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    const answer = new Promise((resolve) =>
      addEventListener("message", ({ data }) => resolve(data === "failed" ? undefined : data), {
        once: true,
      }),
    );
    frame.srcdoc = `<script>
      const body = "{}", headers = { "content-type": "application/json" };
      fetch("${url}/threads", { method: "POST", headers, body })
        .then((response) => response.text(), () => "failed")
        .then((text) => parent.postMessage(text, "*"));
    </script>`;
    document.body.append(frame);
    return await answer;
  },
  "call a tool over MCP": ({ url }) =>
    fetch(`${url}/mcp`, {
      method: "POST",
      mode: "no-cors",
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "email_assistant", arguments: {} },
      }),
    }).then(
      (response) => (response.type === "opaque" ? undefined : response.text()),
      () => undefined,
    ),
};
