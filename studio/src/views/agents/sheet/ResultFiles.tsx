import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import type { ThreadFile } from "../../../api/types.ts";
import { changeSetOfFile } from "../../../pure/change_set.ts";
import { agents } from "../../../text/agents.ts";
import { common } from "../../../text/common.ts";
import { Markdown } from "../../../ui/Markdown.tsx";
import { fileTextQuery, pictureQuery, useObjectUrl } from "../parts/files.ts";
import { Section } from "../parts/Section.tsx";
import { ChangeSetView } from "./ChangeSetView.tsx";

const text = agents.sheet;
const named = (files: ThreadFile[], name: string) => files.find(({ path }) => path === `results/${name}`);

interface FilesProps {
  thread: string;
  files: ThreadFile[];
}

/** The cells that were saved. */
export function SavedChanges({ thread, files }: { thread: string; files: ThreadFile[] | undefined }) {
  if (!files) return <p className="muted">{common.loading(agents.loadingFile)}</p>;
  const file = named(files, "changes.txt");
  return file ? <SavedCells thread={thread} file={file} /> : <p className="muted">{text.noChanges}</p>;
}

function SavedCells({ thread, file }: { thread: string; file: ThreadFile }) {
  const { data } = useQuery(fileTextQuery(thread, file.path, file.modified));
  const changes = useMemo(() => (data === undefined ? undefined : changeSetOfFile(data)), [data]);
  if (!changes) return <p className="muted">{common.loading(agents.loadingFile)}</p>;
  return <ChangeSetView title={text.afterReview} changes={changes} />;
}

export function Report({ thread, files }: FilesProps) {
  const file = named(files, "report.md");
  if (!file) return null;
  return (
    <Section title={text.report}>
      <ReportText thread={thread} file={file} />
    </Section>
  );
}

function ReportText({ thread, file }: { thread: string; file: ThreadFile }) {
  const { data } = useQuery(fileTextQuery(thread, file.path, file.modified));
  if (data === undefined) return <p className="muted">{common.loading(agents.loadingFile)}</p>;
  return (
    <div className="card agent-page">
      <Markdown text={data} />
    </div>
  );
}

/** Pictures that the code drew. */
export function Pictures({ thread, files }: FilesProps) {
  const pictures = files.filter(({ path }) => path.endsWith(".png"));
  if (pictures.length === 0) return null;
  return (
    <Section title={text.pictures}>
      <div className="agent-columns">
        {pictures.map((file) => (
          <Picture key={file.path} thread={thread} file={file} />
        ))}
      </div>
    </Section>
  );
}

function Picture({ thread, file }: { thread: string; file: ThreadFile }) {
  const { data } = useQuery(pictureQuery(thread, file.path, file.modified));
  const url = useObjectUrl(data);
  const name = file.path.split("/").at(-1) ?? file.path;
  return (
    <figure className="card">
      {url && <img className="agent-picture" src={url} alt={text.picture(name)} />}
      <figcaption className="small muted">{name}</figcaption>
    </figure>
  );
}
