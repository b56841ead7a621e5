/** Keys for requests that a person may repeat because the response to the first attempt was lost. */

import { newKey } from "./client.ts";

export class RequestKeys {
  readonly #keys = new Map<string, string>();

  /** Returns the key of a request: the same one as long as the request is the same. */
  of(content: unknown): string {
    const text = JSON.stringify(content);
    const key = this.#keys.get(text) ?? newKey();
    this.#keys.set(text, key);
    return key;
  }

  /** Forgets all keys, after the request succeeded: the same request is then meant to happen again. */
  forget(): void {
    this.#keys.clear();
  }
}
