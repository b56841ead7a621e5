import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** What every view asks for first, as the page asks for it: the browser starts with it while it still loads the scripts. */
const FIRST_REQUESTS = ["/superstep/me", "/superstep/inbox?limit=100&offset=0"];

const firstRequests: Plugin = {
  name: "first-requests",
  apply: "build",
  transformIndexHtml: {
    order: "post",
    handler: () =>
      FIRST_REQUESTS.map((path) => ({
        tag: "link",
        // The page is in `/studio/`.
        attrs: { rel: "preload", as: "fetch", crossorigin: true, href: `./..${path}` },
        injectTo: "head" as const,
      })),
  },
};

// The page may be served below any path, so all addresses in it are relative.
export default defineConfig({
  base: "./",
  plugins: [react(), firstRequests],
  worker: { format: "es" },
  build: {
    target: "es2023",
    // Everything is a file of its own: the policy of the page allows no inline script, style or data address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // One file for the first view: browsers fetch six files of a server at a time, and each more costs a round trip.
        codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] },
      },
    },
  },
  server: {
    proxy: {
      "^/(?!studio|src|node_modules|@).*": process.env.STUDIO_SERVER ?? "http://127.0.0.1:2024",
    },
  },
});
