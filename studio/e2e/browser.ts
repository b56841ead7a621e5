/** A browser for tests, and what every test of the page asks of it. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * What WCAG allows and axe does not know. The drawing of a graph can have any size, and its outline has the same controls
 * (2.5.8, equivalent). A row of a tree is named after its key and says how much is in it, not all that is in it (2.5.3).
 */
function isExcepted(rule: string, element: Element | null): boolean {
  if (rule === "target-size") return element?.closest(".react-flow") != null;
  return rule === "label-content-name-mismatch" && element?.role === "treeitem";
}

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

export interface PageOptions {
  theme?: "light" | "dark";
  width?: number;
  height?: number;
}

/** A page that remembers what must not happen: errors, violations of its policy, and requests to other hosts. */
export class WatchedPage {
  readonly problems: string[] = [];
  readonly context: BrowserContext;
  readonly page: Page;
  readonly #origins = new Set<string>();

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
  }

  static async open(browser: Browser, url: string, options: PageOptions = {}): Promise<WatchedPage> {
    const context = await browser.newContext({
      colorScheme: options.theme ?? "light",
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      reducedMotion: "reduce",
    });
    const watched = new WatchedPage(context, await context.newPage());
    watched.allow(url);
    watched.#watch();
    await watched.page.goto(url);
    return watched;
  }

  /** Lets the page go to another server, too. */
  allow(url: string): void {
    this.#origins.add(new URL(url).origin);
  }

  #watch(): void {
    this.page.on("pageerror", (error) => this.problems.push(`error: ${error.message}`));
    this.page.on("console", (message) => {
      if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text()))
        this.problems.push(message.text());
    });
    this.page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith("blob:") && !this.#origins.has(new URL(url).origin))
        this.problems.push(`request to ${url}`);
    });
  }

  async close(): Promise<void> {
    await this.context.close();
    expect(this.problems).toEqual([]);
  }

  /** Fails if the view violates WCAG 2.2 AA as far as a program can tell. */
  async expectAccessible(): Promise<void> {
    expect(await this.violations()).toEqual([]);
  }

  /** Returns what axe finds, each with the first elements. */
  async violations(): Promise<unknown[]> {
    // In a world of its own: the page's policy lets nobody else run scripts.
    const client = await this.context.newCDPSession(this.page);
    const { frameTree } = await client.send("Page.getFrameTree");
    const world = await client.send("Page.createIsolatedWorld", {
      frameId: frameTree.frame.id,
      worldName: "axe",
    });
    const contextId = world.executionContextId;
    await client.send("Runtime.evaluate", { expression: axe, contextId });
    const expression = `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
      .then((found) => JSON.stringify(found.violations
        .map((one) => [one.id, one.nodes.filter((node) => !(${isExcepted})(one.id, document.querySelector(node.target[0]))).slice(0, 3).map((node) => node.html.slice(0, 160) + " " + (node.any[0]?.message ?? ""))])
        .filter(([, nodes]) => nodes.length > 0)))`;
    const result = await client.send("Runtime.evaluate", { expression, contextId, awaitPromise: true });
    await client.detach();
    return JSON.parse(String(result.result.value)) as unknown[];
  }
}
