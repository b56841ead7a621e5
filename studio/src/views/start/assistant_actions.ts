/** Assistants and their versions: what is asked for and what can be done with them. */

import { queryOptions } from "@tanstack/react-query";

import { queryClient } from "../../api/cache.ts";
import { request } from "../../api/client.ts";
import type { JsonObject } from "../../api/json.ts";
import type { Assistant, AssistantVersion } from "../../api/types.ts";

const id = encodeURIComponent;

export const versionsQuery = (assistant: string) =>
  queryOptions({
    queryKey: ["versions", assistant],
    queryFn: ({ signal }) =>
      request<AssistantVersion[]>(`/assistants/${id(assistant)}/versions`, {
        method: "POST",
        json: { limit: 1000 },
        signal,
      }),
    staleTime: 5_000,
  });

/** What a version says. */
export interface AssistantFields {
  name: string;
  description: string;
  config: JsonObject;
  context: JsonObject;
  metadata: JsonObject;
}

export async function createAssistant(graph: string, fields: AssistantFields): Promise<Assistant> {
  return await changed(
    request<Assistant>("/assistants", { method: "POST", json: { graph_id: graph, ...fields } }),
  );
}

/** Saves a new version, which is in use from then on. */
export async function saveVersion(assistant: string, fields: AssistantFields): Promise<Assistant> {
  return await changed(request<Assistant>(`/assistants/${id(assistant)}`, { method: "PATCH", json: fields }));
}

export async function applyVersion(assistant: string, version: number): Promise<Assistant> {
  const path = `/assistants/${id(assistant)}/latest`;
  return await changed(request<Assistant>(path, { method: "POST", json: { version } }));
}

async function changed<T>(done: Promise<T>): Promise<T> {
  try {
    return await done;
  } finally {
    void queryClient.invalidateQueries({ queryKey: ["assistants"] });
    void queryClient.invalidateQueries({ queryKey: ["versions"] });
  }
}
