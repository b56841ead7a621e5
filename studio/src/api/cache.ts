/** The one cache of what the server said. */

import { QueryClient } from "@tanstack/react-query";

import { ApiProblem } from "./client.ts";

/** How often what is on screen is asked for again: changes of others are to be seen within a second. */
export const LIVE_MS = 800;

/** The inbox has no stream, so a change of it is seen with the next response: this and a slow one are less than a second. */
export const INBOX_MS = 500;

/** How often the row of a thread on screen is asked for. It is small. */
export const ROW_MS = 500;

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
