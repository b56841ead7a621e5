import { defineConfig } from "vitest/config";

// With `LONG=1` everything runs. Without it, what judges clock times, frames and pictures is left out: that needs a quiet machine.
const everything = ["e2e/**/*.test.ts"];
const quick = ["agents", "first_visit", "fork_cases", "keyboard", "two_people"].map(
  (name) => `e2e/${name}.test.ts`,
);
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
