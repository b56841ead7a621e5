import { useQuery } from "@tanstack/react-query";
import { memo, useRef, useState } from "react";

import { ApiProblem } from "../../api/client.ts";
import { filesQuery } from "../../api/queries.ts";
import type { ThreadFile } from "../../api/types.ts";
import { useMay } from "../../app/me.ts";
import { visibleText } from "../../pure/json_tree.ts";
import { text as all } from "../../text/index.ts";
import { thread as texts } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { VirtualRows } from "../../ui/VirtualRows.tsx";
import { deleteFile, downloadFile, uploadFile } from "./actions.ts";
import type { PaneProps } from "./pane.ts";

const text = texts.files;

/** The files of a thread. */
export function FilesPane({ thread }: PaneProps) {
  const id = thread.thread_id;
  const may = useMay();
  const { data: files, error, refetch } = useQuery(filesQuery(id));
  if (error && !files) {
    const isOff = error instanceof ApiProblem && (error.status === 404 || error.status === 501);
    if (!isOff) return <Failure error={error} onRetry={() => void refetch()} />;
    return (
      <Notice title={text.offTitle}>
        <p>{text.offNext}</p>
      </Notice>
    );
  }
  if (!files) return <Loading what={text.what} />;
  return (
    <div className="stack">
      {may("run") && <Upload thread={id} />}
      {files.length === 0 ? (
        <Notice title={text.emptyTitle}>
          <p>{may("run") ? text.emptyNext : text.emptyReadOnly}</p>
        </Notice>
      ) : (
        <FileList thread={id} files={files} />
      )}
    </div>
  );
}

function FileList({ thread, files }: { thread: string; files: ThreadFile[] }) {
  const scroll = useRef<HTMLDivElement>(null);
  const [removing, setRemoving] = useState<string>();
  const [error, setError] = useState<unknown>();
  const download = (path: string) => {
    setError(undefined);
    downloadFile(thread, path).catch(setError);
  };
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {/* biome-ignore lint/a11y/useSemanticElements: its rows are placed by elements in between. */}
      <div ref={scroll} className="file-rows" role="list" aria-label={texts.view.tabs.files}>
        <VirtualRows
          count={files.length}
          estimate={56}
          scroll={scroll}
          role="listitem"
          keyOf={(index) => files[index]?.path ?? ""}
          row={(index) => {
            const file = files[index];
            return file && <FileRow file={file} onDownload={download} onRemove={setRemoving} />;
          }}
        />
      </div>
      {removing !== undefined && (
        <DeleteFile thread={thread} path={removing} onClose={() => setRemoving(undefined)} />
      )}
    </>
  );
}

interface FileRowProps {
  file: ThreadFile;
  onDownload: (path: string) => void;
  onRemove: (path: string) => void;
}

const FileRow = memo(function FileRow({ file, onDownload, onRemove }: FileRowProps) {
  const may = useMay();
  const path = visibleText(file.path);
  return (
    <div className="file-row">
      <bdi className="mono">{path}</bdi>
      <span className="small muted">
        {text.bytes(file.bytes)} · <Time at={file.modified} />
      </span>
      <span className="row">
        <Button aria-label={text.download(path)} onClick={() => onDownload(file.path)}>
          {text.downloadShort}
        </Button>
        {may("edit") && (
          <Button kind="quiet" aria-label={text.remove(path)} onClick={() => onRemove(file.path)}>
            {text.removeShort}
          </Button>
        )}
      </span>
    </div>
  );
});

function Upload({ thread }: { thread: string }) {
  const input = useRef<HTMLInputElement>(null);
  const [status, setStatus] = useState("");
  const [error, setError] = useState<unknown>();
  const upload = async (files: File[]) => {
    setError(undefined);
    try {
      for (const file of files) {
        setStatus(text.uploading(file.name));
        await uploadFile(thread, file);
      }
      setStatus(text.uploaded(files.length));
    } catch (problem) {
      setStatus("");
      setError(problem);
    }
  };
  return (
    <div className="stack">
      <div className="row">
        <Button onClick={() => input.current?.click()}>{text.upload}</Button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={text.upload}
          onChange={({ target }) => {
            void upload([...(target.files ?? [])]);
            // The same file can be chosen again after it changed.
            target.value = "";
          }}
        />
        <span className="small muted" role="status">
          {status}
        </span>
      </div>
      {error !== undefined && <Failure error={error} />}
    </div>
  );
}

function DeleteFile({ thread, path, onClose }: { thread: string; path: string; onClose: () => void }) {
  const [error, setError] = useState<unknown>();
  return (
    <Dialog title={text.removeTitle} isOpen onClose={onClose}>
      <p>
        <bdi>{text.removeWhat(visibleText(path))}</bdi>
      </p>
      {error !== undefined && <Failure error={error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>{all.common.cancel}</Button>
        <Button kind="danger" onClick={() => deleteFile(thread, path).then(onClose, setError)}>
          {text.removeShort}
        </Button>
      </div>
    </Dialog>
  );
}
