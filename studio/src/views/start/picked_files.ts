/** Files from the browser's dialogs and from drag and drop, with their paths. */

import type { ChosenFile } from "../../pure/input_form.ts";

export interface PickedFile extends ChosenFile {
  body: Blob;
}

export function listedFiles(files: FileList | null): PickedFile[] {
  return Array.from(files ?? [], (file) => pick(file, file.webkitRelativePath || file.name));
}

export function textFile(path: string, text: string): PickedFile {
  const body = new Blob([text], { type: "text/plain" });
  return { path, bytes: body.size, body };
}

/** Reads what was dropped: files, and folders with everything inside. */
export async function droppedFiles(dropped: DataTransfer): Promise<PickedFile[]> {
  // The items are gone after the first wait, so all entries are taken before it.
  const entries = Array.from(dropped.items).flatMap((item) => item.webkitGetAsEntry() ?? []);
  if (entries.length === 0) return listedFiles(dropped.files);
  const found = await Promise.all(entries.map((entry) => filesBelow(entry)));
  return found.flat();
}

async function filesBelow(entry: FileSystemEntry): Promise<PickedFile[]> {
  const path = entry.fullPath.replace(/^\//, "");
  if (isFileEntry(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [pick(file, path)];
  }
  if (!isFolderEntry(entry)) return [];
  const reader = entry.createReader();
  const found: PickedFile[] = [];
  // A reader returns some entries at a time, and none at the end.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return found;
    found.push(...(await Promise.all(some.map((each) => filesBelow(each)))).flat());
  }
}

function isFileEntry(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isFolderEntry(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

function pick(file: File, path: string): PickedFile {
  return { path, bytes: file.size, body: file };
}
