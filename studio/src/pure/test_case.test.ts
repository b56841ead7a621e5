import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { TestCase } from "../api/types.ts";
import { fork } from "../text/fork.ts";
import { BYTES_MAX, base64Of, caseFiles, caseName, withFiles } from "./test_case.ts";

const made: TestCase = {
  format: 1,
  about: "",
  graph_id: "mail/../x",
  thread_id: "0190a6b2-0000-7000-8000-000000000001",
  checkpoint_id: "c",
  acts: [],
  models: [],
  script: { replies: [] },
  expected: { asked: [], values: {} },
  not_recovered: ["An edit."],
};

describe("a test case", () => {
  it("has the files of the thread, without the results", () => {
    const files = ["a.md", "results/a.md", "b/results/c.md"].map((path) => ({ path, bytes: 1 }));
    expect(caseFiles(files)[0].map(({ path }) => path)).toEqual(["a.md", "b/results/c.md"]);
  });

  it("says which files are too large", () => {
    const files = [
      { path: "small", bytes: 10 },
      { path: "large", bytes: BYTES_MAX },
      { path: "last", bytes: BYTES_MAX - 10 },
    ];
    const [kept, left] = caseFiles(files);
    expect(kept.map(({ path }) => path)).toEqual(["small", "last"]);
    const complete = withFiles(made, [{ path: "small", bytes: new TextEncoder().encode("hi") }], left);
    expect(complete.files).toEqual([{ path: "small", base64: "aGk=" }]);
    expect(complete.not_recovered).toEqual(["An edit.", fork.fileLost("large")]);
  });

  it("has a name without anything of the server's text", () => {
    expect(caseName(made)).toBe("mail____x-0190a6b2.case.json");
  });

  it("keeps every byte of a file", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100_000 }), (bytes) => {
        const read = Uint8Array.from(atob(base64Of(bytes)), (char) => char.charCodeAt(0));
        expect(read).toEqual(bytes);
      }),
      { numRuns: 20 },
    );
  });
});
