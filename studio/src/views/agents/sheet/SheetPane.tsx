import { useMemo } from "react";

import { isObject, textOf } from "../../../api/json.ts";
import type { ThreadState } from "../../../api/types.ts";
import { changeSetOf, checksOf } from "../../../pure/change_set.ts";
import { agents } from "../../../text/agents.ts";
import { Facts } from "../parts/Facts.tsx";
import { FileList } from "../parts/FileList.tsx";
import { useResultFiles } from "../parts/files.ts";
import { Section } from "../parts/Section.tsx";
import { Word, Words } from "../parts/Words.tsx";
import { ChangeSetView } from "./ChangeSetView.tsx";
import { Checks } from "./Checks.tsx";
import { Journal } from "./Journal.tsx";
import { Pictures, Report, SavedChanges } from "./ResultFiles.tsx";

const text = agents.sheet;

/** A thread of `sheet`: task, change set, steps with their code, pictures, report and the new workbook. */
export function SheetPane({ thread, state }: { thread: string; state: ThreadState }) {
  const values = isObject(state.values) ? state.values : {};
  const results = useResultFiles(thread, state);
  const open = useMemo(
    () => state.interrupts.map(({ value }) => changeSetOf(value)).find((changes) => changes !== undefined),
    [state.interrupts],
  );
  const problem = values.problem ?? values.task;
  const verdict = textOf(values.verdict, "type");
  // Files are of the thread, not of a checkpoint: another branch may have saved what is there.
  const isSaved = verdict === "accept" || verdict === "edit";
  return (
    <div className="stack">
      <Section title={text.task}>
        <Words text={textOf(problem, "instruction") ?? ""} />
        <Facts
          facts={[
            [text.workbook, <Word key="book" text={workbookOf(problem)} />],
            [text.answer, values.answer ? <Words text={String(values.answer)} /> : ""],
            [text.verdict, verdict ?? ""],
          ]}
        />
        {typeof values.stopped === "string" && <p className="muted">{text.stopped(values.stopped)}</p>}
      </Section>
      <Section title={text.changes}>
        {open ? (
          <ChangeSetView changes={open} title="" />
        ) : isSaved ? (
          <SavedChanges thread={thread} files={results} />
        ) : (
          <p className="muted">{verdict === "reject" ? text.rejected : text.notSaved}</p>
        )}
      </Section>
      {!open && <Checks level={2} checks={checksOf(values.checks)} />}
      <Journal journal={values.journal} />
      <Pictures thread={thread} files={results ?? []} />
      <Section title={text.result}>
        <p className="small muted">{text.newerFiles}</p>
        <FileList thread={thread} files={results ?? []} />
      </Section>
      <Report thread={thread} files={results ?? []} />
    </div>
  );
}

function workbookOf(problem: unknown): string {
  const workbook = isObject(problem) ? problem.workbook : undefined;
  return typeof workbook === "string" ? workbook : (textOf(workbook, "path") ?? "");
}
