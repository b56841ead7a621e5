// A visit of a person to an app: a browser page of its own, and a record of what the page sends to our server.

import { join } from "node:path";

export class Visit {
  constructor(browser, { name, app, server, screenshots }) {
    this.browser = browser;
    this.name = name;
    this.app = app;
    this.server = server;
    this.screenshots = screenshots;
    this.sent = [];
    this.problems = [];
  }

  /** Opens the browser window. `storage` is what the app has kept in this browser. */
  async start(storage = {}) {
    const viewport = { width: 1400, height: 1000 };
    this.context = await this.browser.newContext({ viewport });
    await this.context.addInitScript((kept) => {
      for (const [key, value] of Object.entries(kept)) localStorage.setItem(key, value);
    }, storage);
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(15_000);
    this.page.on("pageerror", (error) => this.problems.push(`uncaught in the page: ${error.message}`));
    this.page.on("response", (response) => this.record(response));
    return this.page;
  }

  record(response) {
    const url = response.url();
    if (!url.startsWith(this.server)) return;
    const request = response.request();
    if (request.method() === "OPTIONS") return;
    this.sent.push({
      method: request.method(),
      path: url.slice(this.server.length),
      body: json(request.postData()),
      status: response.status(),
    });
    if (response.status() >= 400) {
      this.problems.push(`${request.method()} ${url}: ${response.status()}, asked for ${request.postData()}`);
    }
  }

  /** Returns the bodies of the requests whose path ends so. */
  bodies(end) {
    return this.sent.filter(({ path }) => path.endsWith(end)).map(({ body }) => body);
  }

  /** Forgets a problem that the drive expects. */
  expectProblem(pattern) {
    const at = this.problems.findIndex((problem) => pattern.test(problem));
    if (at < 0) throw new Error(`no problem like ${pattern}: ${this.problems.join("; ")}`);
    this.problems.splice(at, 1);
  }

  async shot(moment) {
    if (!this.screenshots) return;
    const file = `${this.name}--${moment}`.replaceAll(/[^A-Za-z0-9]+/g, "-");
    await this.page.screenshot({ path: join(this.screenshots, `${file}.png`) });
  }

  async end() {
    await this.context?.close();
  }
}

function json(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return text;
  }
}

/** Repeats what must not depend on the ids that a thread happens to have. */
export async function severalTimes({ visit }, work) {
  for (let round = 0; round < 5; round += 1) {
    await work();
    await visit.end();
  }
}

/** Returns the text field under a caption, in the forms that Agent Inbox and Agent Chat UI share. */
export function fieldUnder(page, caption) {
  return page.locator(`p:text-is("${caption}") + textarea`);
}
