import { useMutation } from "@tanstack/react-query";

import type { ThreadFile } from "../../../api/types.ts";
import { agents } from "../../../text/agents.ts";
import { Button } from "../../../ui/Button.tsx";
import { downloadFile } from "./files.ts";
import { Word } from "./Words.tsx";

/** Files to download. */
export function FileList({ thread, files }: { thread: string; files: ThreadFile[] }) {
  if (files.length === 0) return <p className="muted">{agents.none}</p>;
  return (
    <ul className="stack">
      {files.map((file) => (
        <FileRow key={file.path} thread={thread} file={file} />
      ))}
    </ul>
  );
}

function FileRow({ thread, file }: { thread: string; file: ThreadFile }) {
  const download = useMutation({ mutationFn: () => downloadFile(thread, file.path) });
  const name = file.path.split("/").at(-1) ?? file.path;
  return (
    <li className="row">
      <Button onClick={() => download.mutate()} disabled={download.isPending}>
        {agents.download(name)}
      </Button>
      <span className="small muted">
        <Word text={file.path} /> · {agents.bytes(file.bytes)}
      </span>
      {download.isError && (
        <span className="field-problem" role="alert">
          {agents.downloadFailed}
        </span>
      )}
    </li>
  );
}
