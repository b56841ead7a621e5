import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { newKey } from "../../api/client.ts";
import { isObject, type Json, type JsonObject } from "../../api/json.ts";
import { RequestKeys } from "../../api/request_keys.ts";
import type { Assistant } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, navigate } from "../../app/location.ts";
import {
  type AgentName,
  agentExample,
  agentInput,
  agentSchema,
  type FileChoice,
  fileNeed,
  missingFields,
  readJson,
  uploadPaths,
} from "../../pure/input_form.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { start } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { SchemaForm } from "../../ui/SchemaForm.tsx";
import { AgentPicture } from "./AgentPicture.tsx";
import { shownName } from "./AssistantCard.tsx";
import { forgetDraft, useDraft } from "./draft.ts";
import { FilePicker } from "./FilePicker.tsx";
import { JsonArea } from "./JsonArea.tsx";
import { type PickedFile, textFile } from "./picked_files.ts";
import { startOnNewThread } from "./start_actions.ts";

interface StartFormProps {
  assistant: Assistant;
  schema: unknown;
  /** One of the five agents, which have forms of their own. */
  agent: AgentName | undefined;
}

interface StartDraft extends JsonObject {
  /** What the form holds. */
  value: Json;
  /** What was typed as JSON; `null` while the form is used. */
  json: string | null;
  /** Names a mail that has no id, so that an attempt after a failure is the same mail. */
  id: string;
}

/** The input of an assistant: as a form from its schema, or as JSON; with files for agents that read some. */
export function StartForm({ assistant, schema, agent }: StartFormProps) {
  const draftKey = `start:${assistant.assistant_id}`;
  const [draft, setDraft] = useDraft<StartDraft>(draftKey, {
    value: {},
    json: null,
    id: newKey(),
  });
  const [files, setFiles] = useState<FileChoice<PickedFile>>({ accepted: [], refused: [] });
  const [isTried, setTried] = useState(false);
  const need = agent && fileNeed(agent);
  const paths = uploadPaths(
    files.accepted.map(({ path }) => path),
    need,
  );
  const value = isObject(draft.value) ? draft.value : {};
  const formInput = agent ? agentInput(agent, value, paths, draft.id) : draft.value;
  const missing = agent && draft.json === null ? missingFields(agent, value, paths) : [];
  const read = draft.json === null ? { value: formInput } : readJson(draft.json);
  const input = "value" in read ? read.value : undefined;
  const { starting, progress } = useStart(assistant.assistant_id, draftKey);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (input === undefined || missing.length > 0 || starting.isPending) return;
    starting.mutate({
      input,
      files: files.accepted.map(({ body }, at) => ({ path: paths[at] ?? "", body })),
    });
  };
  const fillIn = () => {
    if (!agent) return;
    const example = agentExample(agent);
    setDraft({ ...draft, value: example.value, json: null });
    if (example.files.length > 0) {
      setFiles({ accepted: example.files.map(({ path, text }) => textFile(path, text)), refused: [] });
    }
  };
  return (
    <form className="stack start-form" onSubmit={submit} noValidate>
      <FormHead assistant={assistant} agent={agent} onExample={fillIn} />
      <InputWays
        isJson={draft.json !== null}
        onChange={(isJson) =>
          setDraft({ ...draft, json: isJson ? JSON.stringify(formInput, null, 2) : null })
        }
      />
      {draft.json === null ? (
        <SchemaForm
          idPrefix="start"
          schema={agent ? agentSchema(agent) : schema}
          value={draft.value}
          onChange={(changed) => setDraft({ ...draft, value: changed })}
          showProblems={isTried}
        />
      ) : (
        <JsonArea
          id="start-json"
          label={start.json}
          hint={start.jsonHint}
          text={draft.json}
          onChange={(json) => setDraft({ ...draft, json })}
          rows={10}
        />
      )}
      {agent && need && (
        <FilePicker label={start.agents[agent].files} need={need} choice={files} onChange={setFiles} />
      )}
      {isTried && missing.length > 0 && (
        <p className="field-problem" role="alert">
          {start.missing(missing)}
        </p>
      )}
      {starting.error && <StartFailure error={starting.error} hasFiles={files.accepted.length > 0} />}
      <div className="row">
        <Button kind="primary" type="submit" disabled={starting.isPending}>
          {start.submit}
        </Button>
        <span role="status" className="muted">
          {starting.isPending &&
            (progress < paths.length ? start.uploading(progress, paths.length) : start.starting)}
        </span>
      </div>
    </form>
  );
}

/** Starts the run and goes to its thread. */
function useStart(assistant: string, draftKey: string) {
  const [progress, setProgress] = useState(0);
  const thread = useRef<string>(undefined);
  const [keys] = useState(() => new RequestKeys());
  const starting = useMutation({
    mutationFn: (plan: { input: Json; files: { path: string; body: Blob }[] }) =>
      startOnNewThread({
        ...plan,
        assistant,
        keys,
        thread: thread.current,
        onThread: (created) => {
          thread.current = created;
        },
        onProgress: setProgress,
      }),
    onSuccess: (started) => {
      forgetDraft(draftKey);
      navigate(hrefOf(["threads", started]));
    },
  });
  return { starting, progress };
}

function StartFailure({ error, hasFiles }: { error: unknown; hasFiles: boolean }) {
  return (
    <>
      <Failure error={error} />
      {hasFiles && <p className="muted">{start.again}</p>}
    </>
  );
}

function FormHead(props: { assistant: Assistant; agent: AgentName | undefined; onExample: () => void }) {
  const { assistant, agent, onExample } = props;
  return (
    <>
      <header className="row">
        <AgentPicture name={agent ?? "graph"} />
        <h1>
          <bdi>{shownName(assistant)}</bdi>
        </h1>
        <span className="spacer" />
        <Link href={hrefOf(["start"])}>{start.all}</Link>
      </header>
      <p className="muted start-lead">
        <bdi>
          {agent
            ? start.agents[agent].what
            : visibleText(assistant.description ?? start.graph(assistant.graph_id))}
        </bdi>
      </p>
      {agent && (
        <div className="row">
          <Button onClick={onExample}>{start.example}</Button>
          {agent === "sheet" && <span className="muted small">{start.examples.workbookHint}</span>}
        </div>
      )}
    </>
  );
}

function InputWays({ isJson, onChange }: { isJson: boolean; onChange: (isJson: boolean) => void }) {
  return (
    <fieldset className="input-ways row">
      <legend className="visually-hidden">{start.how}</legend>
      <label className="row">
        <input type="radio" name="input-way" checked={!isJson} onChange={() => onChange(false)} />
        {start.asForm}
      </label>
      <label className="row">
        <input type="radio" name="input-way" checked={isJson} onChange={() => onChange(true)} />
        {start.asJson}
      </label>
    </fieldset>
  );
}
