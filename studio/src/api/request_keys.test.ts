import { expect, test } from "vitest";

import { RequestKeys } from "./request_keys.ts";

test("an attempt has the key of the one before, and another request has another key", () => {
  const keys = new RequestKeys();
  const first = keys.of({ text: "Hello" });
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(keys.of({ text: "Hello" })).toBe(first);
  expect(keys.of({ text: "Hello!" })).not.toBe(first);
  keys.forget();
  expect(keys.of({ text: "Hello" })).not.toBe(first);
});
