import { defineConfig } from "vitest/config";

// In a real browser against the real program: one file after the other, since they share two processors.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
