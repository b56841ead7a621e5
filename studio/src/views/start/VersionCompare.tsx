import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { JsonObject } from "../../api/json.ts";
import type { Assistant, AssistantVersion } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { readJson, type Settings, settingsOf } from "../../pure/input_form.ts";
import { assistants as text } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Loading } from "../../ui/Notice.tsx";
import { shownName } from "./AssistantCard.tsx";
import { versionsQuery } from "./assistant_actions.ts";
import { type ComparedRuns, lastInputs } from "./compare_versions.ts";
import { useDraft } from "./draft.ts";
import { JsonArea } from "./JsonArea.tsx";
import { startVersion } from "./start_actions.ts";
import { VersionResults } from "./VersionResults.tsx";

interface CompareDraft extends JsonObject {
  left: number;
  right: number;
  /** Where the inputs come from. */
  source: "threads" | "pasted";
  count: number;
  pasted: string;
  runs: ComparedRuns[];
  /** The versions of the runs. */
  ran: number[];
}

/** Runs two versions on the same inputs and shows what came of them. */
export function VersionCompare({ assistant }: { assistant: Assistant }) {
  const id = assistant.assistant_id;
  const versions = useQuery(versionsQuery(id));
  return (
    <div className="stack">
      <header className="row">
        <h1>
          <bdi>
            {shownName(assistant)}: {text.compare}
          </bdi>
        </h1>
        <span className="spacer" />
        <Link href={hrefOf(["assistants", id])}>{text.versions}</Link>
      </header>
      <p className="muted start-lead">{text.compareLead}</p>
      {versions.error && <Failure error={versions.error} onRetry={() => void versions.refetch()} />}
      {versions.isPending && <Loading what={text.loadingVersions} />}
      {versions.data?.length === 1 && <p>{text.compareOne}</p>}
      {versions.data && versions.data.length > 1 && (
        <CompareForm assistant={assistant} versions={versions.data} />
      )}
    </div>
  );
}

interface CompareFormProps {
  assistant: Assistant;
  versions: AssistantVersion[];
}

function CompareForm({ assistant, versions }: CompareFormProps) {
  const id = assistant.assistant_id;
  const [newest, before] = versions.map(({ version }) => version);
  const [draft, setDraft] = useDraft<CompareDraft>(`compare:${id}`, {
    left: before ?? 1,
    right: newest ?? 1,
    source: "threads",
    count: 3,
    pasted: "{}",
    runs: [],
    ran: [],
  });
  const change = (fields: Partial<CompareDraft>) => setDraft({ ...draft, ...fields } as CompareDraft);
  const [isConfirmed, setConfirmed] = useState(false);
  const settings = (number: number) => {
    const found = versions.find(({ version }) => version === number) ?? assistant;
    return settingsOf(found as unknown as Settings, assistant as unknown as Settings);
  };
  const running = useMutation({
    mutationFn: () => startAll(id, settings(draft.left), settings(draft.right), draft),
    onSuccess: (runs) => change({ runs, ran: [draft.left, draft.right] }),
  });
  const isSame = draft.left === draft.right;
  const isReady = !isSame && isConfirmed && (draft.source === "threads" || "value" in readJson(draft.pasted));
  const numbers = versions.map(({ version }) => version);
  return (
    <>
      <div className="stack start-form">
        <div className="version-pair">
          <VersionChoice
            label={text.left}
            numbers={numbers}
            value={draft.left}
            onChange={(left) => change({ left })}
          />
          <VersionChoice
            label={text.right}
            numbers={numbers}
            value={draft.right}
            onChange={(right) => change({ right })}
          />
        </div>
        {isSame && <p className="field-problem">{text.sameVersion}</p>}
        {[draft.left, draft.right].map((number) => {
          const { inherited } = settings(number);
          return inherited.length > 0 && <p key={number}>{text.inherited(number, inherited)}</p>;
        })}
        <InputChoice draft={draft} onChange={change} />
        <label className="row">
          <input
            type="checkbox"
            checked={isConfirmed}
            onChange={(event) => setConfirmed(event.target.checked)}
          />
          {text.confirm}
        </label>
        {running.error && <Failure error={running.error} />}
        {running.data?.length === 0 && <p role="status">{text.noThreads}</p>}
        <div className="row">
          <Button kind="primary" disabled={!isReady || running.isPending} onClick={() => running.mutate()}>
            {text.run}
          </Button>
          <span role="status" className="muted">
            {running.isPending && text.status.starting}
          </span>
        </div>
      </div>
      {draft.runs.map((runs, place) => (
        <VersionResults key={runs.left.thread} runs={runs} versions={draft.ran} place={place + 1} />
      ))}
    </>
  );
}

async function startAll(
  assistant: string,
  left: Settings,
  right: Settings,
  draft: CompareDraft,
): Promise<ComparedRuns[]> {
  const pasted = readJson(draft.pasted);
  const inputs =
    draft.source === "threads"
      ? await lastInputs(assistant, draft.count)
      : [{ input: ("value" in pasted ? pasted.value : undefined) ?? null, filesFrom: undefined }];
  const runs: ComparedRuns[] = [];
  for (const { input, filesFrom } of inputs) {
    const [one, other] = await Promise.all(
      [left, right].map((settings) => startVersion(assistant, settings, input, filesFrom)),
    );
    if (!one || !other) continue;
    runs.push({
      left: { thread: one.thread_id, run: one.run_id },
      right: { thread: other.thread_id, run: other.run_id },
    });
  }
  return runs;
}

interface VersionChoiceProps {
  label: string;
  numbers: number[];
  value: number;
  onChange: (version: number) => void;
}

function VersionChoice({ label, numbers, value, onChange }: VersionChoiceProps) {
  const id = `compare-${label.replaceAll(" ", "-").toLowerCase()}`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {numbers.map((number) => (
          <option key={number} value={number}>
            {text.version(number)}
          </option>
        ))}
      </select>
    </div>
  );
}

interface InputChoiceProps {
  draft: CompareDraft;
  onChange: (fields: Partial<CompareDraft>) => void;
}

function InputChoice({ draft, onChange }: InputChoiceProps) {
  const isPasted = draft.source === "pasted";
  return (
    <fieldset className="input-ways stack">
      <legend>{text.inputsFrom}</legend>
      <label className="row">
        <input
          type="radio"
          name="compare-source"
          checked={!isPasted}
          onChange={() => onChange({ source: "threads" })}
        />
        {text.lastThreads}
      </label>
      <label className="row">
        <input
          type="radio"
          name="compare-source"
          checked={isPasted}
          onChange={() => onChange({ source: "pasted" })}
        />
        {text.pasted}
      </label>
      {isPasted ? (
        <JsonArea
          id="compare-input"
          label={text.inputs}
          text={draft.pasted}
          onChange={(pasted) => onChange({ pasted })}
        />
      ) : (
        <div className="field">
          <label htmlFor="compare-count">{text.howMany}</label>
          <input
            id="compare-count"
            type="number"
            min={1}
            max={20}
            value={draft.count}
            onChange={(event) =>
              onChange({ count: Math.min(20, Math.max(1, Number(event.target.value) || 1)) })
            }
          />
        </div>
      )}
    </fieldset>
  );
}
