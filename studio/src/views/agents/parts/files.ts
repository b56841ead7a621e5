/** Files of a thread. They are fetched with the visitor's key, so an address alone would not do. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { LIVE_MS } from "../../../api/cache.ts";
import { request, send } from "../../../api/client.ts";
import type { ThreadFile, ThreadState } from "../../../api/types.ts";

/** Returns what the agent made; `undefined` while the list may be older than the state. */
export function useResultFiles(thread: string, state: ThreadState): ThreadFile[] | undefined {
  // A node writes files before its checkpoint, so a new checkpoint is the time to look.
  const { data } = useQuery({
    queryKey: ["files", thread, state.checkpoint_id],
    queryFn: ({ signal }) =>
      request<ThreadFile[]>(`/superstep/threads/${encodeURIComponent(thread)}/files`, { signal }),
    refetchInterval: LIVE_MS * 4,
  });
  return data?.filter(({ path }) => path.startsWith("results/"));
}

export async function fetchFile(thread: string, path: string, signal?: AbortSignal): Promise<Blob> {
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  const url = `/superstep/threads/${encodeURIComponent(thread)}/files/${encoded}`;
  const response = await send(url, signal ? { signal } : {});
  return await response.blob();
}

/** A file as text. It is fetched again when it was modified. */
export const fileTextQuery = (thread: string, path: string, modified: string) =>
  queryOptions({
    queryKey: ["file", thread, path, modified],
    queryFn: async ({ signal }) => await (await fetchFile(thread, path, signal)).text(),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** A picture as PNG, whatever its bytes are: the browser decodes it as that or not at all. */
export const pictureQuery = (thread: string, path: string, modified: string) =>
  queryOptions({
    queryKey: ["picture", thread, path, modified],
    queryFn: async ({ signal }) => {
      const bytes = await fetchFile(thread, path, signal);
      return new Blob([bytes], { type: "image/png" });
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Returns an address for a blob, as long as the component is there. */
export function useObjectUrl(blob: Blob | undefined): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!blob) return;
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
}

/** Saves a file under its own name. */
export async function downloadFile(thread: string, path: string): Promise<void> {
  const bytes = await fetchFile(thread, path);
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = path.split("/").at(-1) ?? "file";
  link.click();
  // The browser reads the blob after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
