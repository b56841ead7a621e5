import { refreshThread } from "../../api/actions.ts";
import { queryClient } from "../../api/cache.ts";
import { request, send } from "../../api/client.ts";
import type { Json, JsonObject } from "../../api/json.ts";

const id = encodeURIComponent;

export async function deleteThread(thread: string): Promise<void> {
  await request(`/threads/${id(thread)}`, { method: "DELETE" });
  // Nothing of it is asked for again: the server would say that it does not exist.
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[1] === thread });
  void queryClient.invalidateQueries({ queryKey: ["threads"] });
  void queryClient.invalidateQueries({ queryKey: ["inbox"] });
}

/** Writes values into the state, in the name of a node if one is given. */
export async function updateState(
  thread: string,
  update: { values: JsonObject; checkpoint: string | undefined; node: string | undefined },
): Promise<void> {
  const json: Record<string, Json> = { values: update.values };
  if (update.checkpoint) json.checkpoint_id = update.checkpoint;
  if (update.node) json.as_node = update.node;
  await request(`/threads/${id(thread)}/state`, { method: "POST", json });
  await refreshThread(thread);
}

/** Where a file of a thread is. */
export const filePath = (thread: string, path: string) =>
  `/superstep/threads/${id(thread)}/files/${path.split("/").map(id).join("/")}`;

/** Fetches a file and lets the browser store it: the key of the API is in no address. */
export async function downloadFile(thread: string, path: string): Promise<void> {
  const response = await send(filePath(thread, path));
  // Whatever the file is, it is data: never shown as a page of this server.
  const blob = new Blob([await response.arrayBuffer()], { type: "application/octet-stream" });
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = path.slice(path.lastIndexOf("/") + 1);
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function uploadFile(thread: string, file: File): Promise<void> {
  await request(filePath(thread, file.name), { method: "PUT", body: file });
  await queryClient.invalidateQueries({ queryKey: ["files", thread] });
}

export async function deleteFile(thread: string, path: string): Promise<void> {
  await request(filePath(thread, path), { method: "DELETE" });
  await queryClient.invalidateQueries({ queryKey: ["files", thread] });
}
