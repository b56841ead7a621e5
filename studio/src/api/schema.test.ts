import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

test("the types of the API were made from the document of the server", () => {
  const types = readFileSync(join(import.meta.dirname, "schema.ts"), "utf8");
  const [head = ""] = types.split("\n", 1);
  const hash = createHash("sha256");
  hash.update(readFileSync(join(import.meta.dirname, "../../openapi.json")));
  hash.update(types.slice(head.length + 1));
  expect(head, "run `npm run types`").toBe(`// Made by \`npm run types\`: ${hash.digest("hex")}`);
});
