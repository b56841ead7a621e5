/** Starting a run on a new thread, with files. */

import { createThread, startRun } from "../../api/actions.ts";
import { request, send } from "../../api/client.ts";
import type { Json, JsonObject } from "../../api/json.ts";
import type { RequestKeys } from "../../api/request_keys.ts";
import type { Run, ThreadFile } from "../../api/types.ts";

const id = encodeURIComponent;
/** How many files are uploaded at once. */
const AT_ONCE = 4;

export interface UploadFile {
  path: string;
  body: Blob;
}

export interface StartPlan {
  assistant: string;
  input: Json;
  files: UploadFile[];
  /** A thread of an attempt that failed: its files are there already, and are replaced. */
  thread: string | undefined;
  onThread: (thread: string) => void;
  /** For all attempts, so that an attempt whose response was lost is not repeated. */
  keys: RequestKeys;
  onProgress: (uploaded: number) => void;
}

/** Creates a thread, uploads the files, starts the run, and returns the thread. */
export async function startOnNewThread(plan: StartPlan): Promise<string> {
  const thread = plan.thread ?? (await createThread({}, plan.keys.of("thread"))).thread_id;
  plan.onThread(thread);
  let uploaded = 0;
  plan.onProgress(uploaded);
  for (let first = 0; first < plan.files.length; first += AT_ONCE) {
    const next = plan.files.slice(first, first + AT_ONCE);
    await Promise.all(
      next.map(async (file) => {
        await uploadFile(thread, file);
        plan.onProgress(++uploaded);
      }),
    );
  }
  await startRun(thread, plan.assistant, plan.input, {}, plan.keys.of([thread, plan.input]));
  return thread;
}

export async function uploadFile(thread: string, { path, body }: UploadFile): Promise<void> {
  await request(filePath(thread, path), { method: "PUT", body });
}

/** Copies the files that a thread was given to another one. What the agent made stays where it is. */
export async function copyFiles(from: string, to: string): Promise<void> {
  // A server without files answers with an error.
  const files = await request<ThreadFile[]>(`/superstep/threads/${id(from)}/files`).catch(() => []);
  for (const { path } of files.filter((file) => !file.path.startsWith("results/"))) {
    const body = await (await send(filePath(from, path))).blob();
    await uploadFile(to, { path, body });
  }
}

function filePath(thread: string, path: string): string {
  return `/superstep/threads/${id(thread)}/files/${path.split("/").map(id).join("/")}`;
}

/** Starts a run of a version on a thread of its own, and returns it. */
export async function startVersion(
  assistant: string,
  settings: { config: JsonObject; context: JsonObject },
  input: Json,
  filesFrom: string | undefined,
): Promise<Run> {
  const { thread_id: thread } = await createThread({ made_by: "studio compare" });
  if (filesFrom) await copyFiles(filesFrom, thread);
  return await startRun(thread, assistant, input, { config: settings.config, context: settings.context });
}
