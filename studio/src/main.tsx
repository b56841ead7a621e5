// First, so that the style sheets of views come after them and win.
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { queryClient } from "./api/cache.ts";
import { watchThreads } from "./api/thread_watch.ts";
import { App } from "./app/App.tsx";
import { storedDirection } from "./app/direction.ts";

watchThreads(queryClient);
document.documentElement.dir = storedDirection();

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
