/** "Make a test of it": saves a branch as a test case that `archie test` plays again. */

import { ApiProblem, request, send } from "../../../api/client.ts";
import type { StateDiff, TestCase, ThreadFile } from "../../../api/types.ts";
import { caseFiles, caseName, withFiles } from "../../../pure/test_case.ts";
import { filePath } from "../actions.ts";

const id = encodeURIComponent;

export async function readDiff(
  thread: string,
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<StateDiff> {
  const path = `/superstep/threads/${id(thread)}/diff`;
  return await request<StateDiff>(path, { method: "POST", json: { from, to }, ...(signal && { signal }) });
}

/** A test case that was saved. */
export interface SavedCase {
  name: string;
  /** How many things of the branch it lacks. */
  lost: number;
}

/** Saves the branch that ends at a checkpoint as a file. */
export async function makeTest(thread: string, tip: string): Promise<SavedCase> {
  const path = `/superstep/threads/${id(thread)}/case`;
  const [made, listed] = await Promise.all([
    request<TestCase>(path, { query: { checkpoint_id: tip } }),
    listFiles(thread),
  ]);
  const [kept, left] = caseFiles(listed);
  const files = await Promise.all(kept.map((file) => readFile(thread, file.path)));
  const complete = withFiles(made, files, left);
  const name = caseName(made);
  saveAs(name, JSON.stringify(complete, null, 2));
  return { name, lost: complete.not_recovered.length };
}

async function listFiles(thread: string): Promise<ThreadFile[]> {
  try {
    return await request<ThreadFile[]>(`/superstep/threads/${id(thread)}/files`);
  } catch (error) {
    // A server without files refuses.
    if (error instanceof ApiProblem && !error.isTransient) return [];
    throw error;
  }
}

async function readFile(thread: string, path: string) {
  const response = await send(filePath(thread, path));
  return { path, bytes: new Uint8Array(await response.arrayBuffer()) };
}

function saveAs(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has read the address by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
