/** The one cache of what the server said. */

import { QueryClient } from "@tanstack/react-query";

import { ApiProblem } from "./client.ts";

/** How often what is on screen is asked for again: changes of others are to be seen within a second. */
export const LIVE_MS = 800;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 500,
      // What was seen stays on screen while the server is away; the banner says so.
      retry: (failures, error) => error instanceof ApiProblem && error.isTransient && failures < 2,
      retryDelay: 400,
      networkMode: "always",
    },
    mutations: { networkMode: "always", retry: false },
  },
});
