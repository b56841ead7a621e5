/** A test case as `archie test` plays it: what the server returns of a branch, with the files that its thread had. */

import type { TestCase } from "../api/types.ts";
import { fork } from "../text/fork.ts";

export interface CaseFile {
  path: string;
  bytes: Uint8Array;
}

/** The highest number of bytes of all files of a case. */
export const BYTES_MAX = 8 * 1024 * 1024;

/** Returns the files that go into a case, and those that are too large. What agents left in `results` comes again. */
export function caseFiles<F extends { path: string; bytes: number }>(files: readonly F[]): [F[], F[]] {
  const [kept, left]: [F[], F[]] = [[], []];
  let bytes = 0;
  for (const file of files.filter(({ path }) => !path.startsWith("results/"))) {
    const fits = bytes + file.bytes <= BYTES_MAX;
    if (fits) bytes += file.bytes;
    (fits ? kept : left).push(file);
  }
  return [kept, left];
}

/** Returns a case with files, which says which files it lacks. */
export function withFiles(
  made: TestCase,
  files: readonly CaseFile[],
  left: readonly { path: string }[],
): TestCase {
  return {
    ...made,
    files: files.map(({ path, bytes }) => ({ path, base64: base64Of(bytes) })),
    not_recovered: [...made.not_recovered, ...left.map(({ path }) => fork.fileLost(path))],
  };
}

/** Nothing of the server's text becomes part of the name of a file. */
export function caseName({ graph_id, thread_id }: TestCase): string {
  const plain = (text: string) => text.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  return `${plain(graph_id)}-${plain(thread_id).slice(0, 8)}.case.json`;
}

/** As many bytes as a call may have arguments, in every browser. */
const CHUNK = 0x4000;

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(text);
}
