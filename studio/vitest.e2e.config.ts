import { defineConfig } from "vitest/config";

// With `LONG=1` everything runs, in its full size. Without it, what judges clock times, frames and pictures is left out,
// because that needs a quiet machine; so are bad networks, which take minutes. The others have a size that CI has time for.
const everything = ["e2e/**/*.test.ts"];
const quick = [
  "accessible",
  "agents",
  "chat",
  "first_visit",
  "fork_cases",
  "inbox",
  "keyboard",
  "operate",
  "security",
  "truth",
  "truth_forks",
  "two_people",
].map((name) => `e2e/${name}.test.ts`);
const isNamed = process.argv.some((argument) => argument.startsWith("e2e/"));

// In a real browser against the real program: one file after the other, since they share two processors.
export default defineConfig({
  test: {
    include: process.env.LONG === "1" || isNamed ? everything : quick,
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
