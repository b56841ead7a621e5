// Runs the browser tests of `libs/sdk-react` in langgraphjs as its own configuration does, in Chromium through Playwright, and
// without a second try for a test that fails.

import react from "@vitejs/plugin-react";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  test: {
    globals: true,
    testTimeout: 5_000,
    retry: 0,
    // In place of `mock-server.ts`, which starts a server in this process.
    globalSetup: ["./server_address.mjs"],
    include: ["src/tests/*.test.tsx"],
    // One page at a time: the tests wait for at most some seconds.
    fileParallelism: false,
    browser: {
      enabled: true,
      headless: true,
      screenshotFailures: false,
      connectTimeout: 120_000,
      provider: playwright({
        launchOptions: {
          executablePath: process.env.BROWSER,
          // The sandbox of Chromium does not start for root, nor in most containers.
          args: ["--no-sandbox"],
        },
      }),
      instances: [{ browser: "chromium" }],
    },
  },
});
