/** A visitor without a mouse and without eyes: presses keys, and knows of the focus only what a screen reader says. */

import type { CDPSession, Page } from "playwright-core";

export interface Spoken {
  role: string;
  name: string;
}

export class Keyboard {
  readonly page: Page;
  readonly #client: CDPSession;

  private constructor(page: Page, client: CDPSession) {
    this.page = page;
    this.#client = client;
  }

  static async of(page: Page): Promise<Keyboard> {
    return new Keyboard(page, await page.context().newCDPSession(page));
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      await this.page.keyboard.press(key);
      await this.#focusMoved();
    }
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text);
  }

  /** Replaces what is in the field with the focus. */
  async replace(text: string): Promise<void> {
    await this.press("Control+a");
    await this.type(text);
  }

  /** Presses Tab until the focus is on a control with this role and name. */
  async tabTo(role: string, name: string | RegExp): Promise<void> {
    await this.#moveTo("Tab", role, name);
  }

  /** Presses an arrow key until the focus is there: between tabs, or options of a group. */
  async arrowTo(key: "ArrowDown" | "ArrowRight", role: string, name: string | RegExp): Promise<void> {
    await this.#moveTo(key, role, name);
  }

  /** Goes to a link or a button and presses it. */
  async follow(role: "link" | "button", name: string | RegExp): Promise<void> {
    await this.tabTo(role, name);
    await this.press("Enter");
  }

  async #moveTo(key: string, role: string, name: string | RegExp): Promise<void> {
    const passed: string[] = [];
    const isThere = (now: Spoken) =>
      now.role === role && (typeof name === "string" ? now.name === name : name.test(now.name));
    // What is loaded meanwhile may come before the focus: the second round finds it.
    for (let presses = 0; presses < PRESSES_MAX; presses += 1) {
      const now = await this.focused();
      if (isThere(now)) return;
      passed.push(`${now.role} "${now.name}"`);
      await this.press(key);
    }
    throw new Error(`${key} leads to no ${role} "${name}", but to: ${[...new Set(passed)].join(", ")}`);
  }

  /**
   * Tabs and groups of options move the focus in a timer that the key starts. Without waiting for it, `focused` returns the control
   * before, and the next key moves one control too far.
   */
  async #focusMoved(): Promise<void> {
    await this.page.evaluate(() => new Promise((done) => setTimeout(done, 0)));
  }

  /** Returns what a screen reader says about the focus. */
  async focused(): Promise<Spoken> {
    const { result } = await this.#client.send("Runtime.evaluate", { expression: "document.activeElement" });
    if (!result.objectId) return { role: "none", name: "" };
    const { nodes } = await this.#client.send("Accessibility.getPartialAXTree", {
      objectId: result.objectId,
      fetchRelatives: false,
    });
    await this.#client.send("Runtime.releaseObject", { objectId: result.objectId });
    const [node] = nodes;
    return { role: String(node?.role?.value ?? "none"), name: String(node?.name?.value ?? "").trim() };
  }
}

const PRESSES_MAX = 160;
