// Writes the types of the API from the document of the server, with the hash of both: `src/api/schema.test.ts` checks it, so that
// neither changes without the other.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const studio = join(import.meta.dirname, "..");
const file = join(studio, "src/api/schema.ts");
// The generator needs an older compiler than the page has, so it is not one of the packages of the page.
const packages = ["-p", "typescript@5", "-p", "openapi-typescript@7"];
execFileSync("npx", ["-y", ...packages, "openapi-typescript", "openapi.json", "-o", file], {
  cwd: studio,
  stdio: "inherit",
});
const types = readFileSync(file, "utf8");
const hash = createHash("sha256");
hash.update(readFileSync(join(studio, "openapi.json")));
hash.update(types);
writeFileSync(file, `// Made by \`npm run types\`: ${hash.digest("hex")}\n${types}`);
