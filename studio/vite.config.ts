import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The page may be served below any path, so all addresses in it are relative.
export default defineConfig({
  base: "./",
  plugins: [react()],
  worker: { format: "es" },
  build: {
    target: "es2023",
    // Everything is a file of its own: the policy of the page allows no inline script, style or data address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
  server: {
    proxy: {
      "^/(?!studio|src|node_modules|@).*": process.env.STUDIO_SERVER ?? "http://127.0.0.1:2024",
    },
  },
});
