/** What people do who run a server: each button is pressed, and what came of it is read from the server. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Cron } from "../src/api/types.ts";
import { openBrowser, WatchedPage } from "./browser.ts";
import { Lab } from "./lab.ts";

const PATIENT = { timeout: 20_000 };
const ADMIN = "alice@example.com";

/** Receives webhooks, and refuses them until it is told to take them. */
class Receiver {
  isOpen = false;
  readonly bodies: string[] = [];
  refused = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on("end", () => {
        if (this.isOpen) this.bodies.push(body);
        else this.refused += 1;
        response.writeHead(this.isOpen ? 200 : 503).end();
      });
    });
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

let browser: Browser;
let receiver: Receiver;
let lab: Lab;
let watched: WatchedPage;
let page: Page;

beforeAll(async () => {
  browser = await openBrowser();
  receiver = await Receiver.start();
  lab = await Lab.start({
    people: { [ADMIN]: "read,run,answer,edit,admin" },
    args: ["--webhook-host", receiver.host],
  });
  watched = await WatchedPage.open(browser, lab.page);
  page = watched.page;
  await page.getByLabel("API key").fill(lab.keys.get(ADMIN) ?? "");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
});
afterAll(async () => {
  await watched?.close();
  await browser?.close();
  await lab?.stop();
  receiver?.stop();
});

/** Opens a section without a reload, which would forget the key. */
async function section(name: string): Promise<void> {
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
}

test("a delivery that the receiver refused is sent again", async () => {
  const thread = await lab.newThread();
  await lab.call("POST", `/threads/${thread}/runs/wait`, {
    assistant_id: "atris",
    input: { query: "@shop list orders" },
    webhook: `http://${receiver.host}/hook`,
  });
  await expect.poll(() => receiver.refused, PATIENT).toBeGreaterThan(0);
  receiver.isOpen = true;
  await section("Webhooks");
  const row = page.getByRole("row").filter({ hasText: receiver.host });
  await row.getByRole("button", { name: /^Send (again|now)/ }).click();
  await expect.poll(() => receiver.bodies.length, PATIENT).toBe(1);
  expect(receiver.bodies[0]).toContain(thread);
  await row.getByText("Delivered").waitFor();
});

test("an item of the store is made, edited and deleted", async () => {
  const stored = async () => {
    const path = "/store/items?namespace=preferences.ada&key=tone";
    return (await lab.call<{ value: unknown } | null>("GET", path))?.value;
  };
  await section("Store");
  await page.getByRole("button", { name: "New item" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Namespace").fill("preferences.ada");
  await dialog.getByLabel("Key").fill("tone");
  await dialog.getByLabel("Value, a JSON object").fill('{"text": "Short"}');
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect.poll(stored, PATIENT).toEqual({ text: "Short" });
  await page.getByRole("link", { name: "tone" }).first().click();
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await dialog.getByLabel("Value, a JSON object").fill('{"text": "Long", "since": 2026}');
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect.poll(stored, PATIENT).toEqual({ text: "Long", since: 2026 });
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.getByRole("button", { name: "Delete the item" }).click();
  await expect.poll(stored, PATIENT).toBeUndefined();
});

test("a key is made, replaced by a new one, and revoked", async () => {
  const status = async (key: string) => {
    const response = await fetch(`${lab.url}/superstep/me`, { headers: { "x-api-key": key } });
    return response.status;
  };
  const secret = async () => {
    const shown = await page.getByRole("textbox", { name: "The new key" }).inputValue();
    await page.getByRole("button", { name: "I have stored it" }).click();
    return shown;
  };
  await section("API keys");
  await page.getByRole("button", { name: "New key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("reports");
  await dialog.getByRole("button", { name: "Create the key" }).click();
  const first = await secret();
  expect(await status(first)).toBe(200);
  await page.getByRole("button", { name: "Rotate the key reports" }).click();
  await dialog.getByLabel("The old key stays valid for").selectOption({ label: "no time" });
  await dialog.getByRole("button", { name: "Create the new key" }).click();
  const second = await secret();
  expect(second).not.toBe(first);
  expect([await status(first), await status(second)]).toEqual([401, 200]);
  // The old one has the same name, and ends now.
  const row = page.getByRole("row", { name: /reports/ }).filter({ hasText: "in 90 days" });
  await row.getByRole("button", { name: "Revoke the key reports" }).click();
  await dialog.getByRole("button", { name: "Revoke the key" }).click();
  await expect.poll(() => status(second), PATIENT).toBe(401);
});

test("a cron is made as it was entered", async () => {
  await section("Crons");
  await page.getByRole("link", { name: "New cron" }).first().click();
  await page.getByLabel("Assistant", { exact: true }).selectOption({ label: "atris" });
  await page.getByRole("button", { name: "Every week" }).click();
  await page.getByLabel("Time zone", { exact: true }).fill("Europe/Berlin");
  await page.getByRole("textbox", { name: /^query/ }).fill("@shop list orders");
  await page.getByRole("button", { name: "Create the cron" }).click();
  await page.getByRole("heading", { name: "Cron of atris" }).waitFor();
  const [cron] = await lab.call<Cron[]>("POST", "/runs/crons/search", {});
  expect(cron?.schedule).toBe("0 9 * * 1");
  expect(cron?.timezone).toBe("Europe/Berlin");
  expect(cron?.payload).toMatchObject({ input: { query: "@shop list orders" } });
});

test("every figure of the health page has a name", async () => {
  await section("Health");
  const figures = page.getByRole("table", { name: "Metrics of this server process" });
  await figures.waitFor();
  const names = await figures.getByRole("rowheader").allTextContents();
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => name.includes("_"))).toEqual([]);
});
