import { useMutation, useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";

import { isObject, type JsonObject } from "../../api/json.ts";
import { schemasQuery } from "../../api/queries.ts";
import type { Assistant } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, navigate } from "../../app/location.ts";
import { readJson } from "../../pure/input_form.ts";
import { common } from "../../text/common.ts";
import { assistants as text } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { SchemaForm } from "../../ui/SchemaForm.tsx";
import { shownName } from "./AssistantCard.tsx";
import { createAssistant, saveVersion } from "./assistant_actions.ts";
import { forgetDraft, useDraft } from "./draft.ts";
import { JsonArea } from "./JsonArea.tsx";

interface VersionFormProps {
  /** The assistant that gets a new version; `undefined` for a new one. */
  assistant?: Assistant;
  graphs: string[];
}

interface VersionDraft extends JsonObject {
  graph: string;
  name: string;
  description: string;
  context: string;
  config: string;
  metadata: string;
}

/** A new assistant, or a new version of one. */
export function VersionForm({ assistant, graphs }: VersionFormProps) {
  const draftKey = `assistant:${assistant ? `${assistant.assistant_id}:${assistant.version}` : "new"}`;
  const [draft, setDraft] = useDraft<VersionDraft>(draftKey, draftOf(assistant, graphs));
  const change = (fields: Partial<VersionDraft>) => setDraft({ ...draft, ...fields } as VersionDraft);
  const [context, config, metadata] = [draft.context, draft.config, draft.metadata].map(objectOf);
  const saving = useMutation({
    mutationFn: (fields: Parameters<typeof saveVersion>[1]) =>
      assistant ? saveVersion(assistant.assistant_id, fields) : createAssistant(draft.graph, fields),
    onSuccess: (saved) => {
      forgetDraft(draftKey);
      navigate(hrefOf(["assistants", saved.assistant_id]));
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!context || !config || !metadata || saving.isPending) return;
    const { name, description } = draft;
    saving.mutate({ name, description, context, config, metadata });
  };
  const back = assistant ? ["assistants", assistant.assistant_id] : ["assistants"];
  return (
    <form className="stack start-form" onSubmit={submit}>
      <h1>
        <bdi>{assistant ? text.editTitle(shownName(assistant)) : text.createTitle}</bdi>
      </h1>
      {!assistant && (
        <GraphField graphs={graphs} graph={draft.graph} onChange={(graph) => change({ graph })} />
      )}
      <TextField label={text.name} value={draft.name} onChange={(name) => change({ name })} />
      <TextField
        label={text.description}
        value={draft.description}
        onChange={(description) => change({ description })}
      />
      <ContextField
        assistant={assistant?.assistant_id ?? draft.graph}
        source={draft.context}
        onChange={(changed) => change({ context: changed })}
      />
      <ObjectField
        label={text.config}
        hint={text.configHint}
        source={draft.config}
        onChange={(config) => change({ config })}
      />
      <ObjectField
        label={text.metadata}
        source={draft.metadata}
        onChange={(metadata) => change({ metadata })}
      />
      {saving.error && <Failure error={saving.error} />}
      <div className="row">
        <Button kind="primary" type="submit" disabled={!context || !config || !metadata || saving.isPending}>
          {saving.isPending ? text.saving : assistant ? text.save : text.saveNew}
        </Button>
        <Link className="button" href={hrefOf(back)}>
          {common.cancel}
        </Link>
      </div>
    </form>
  );
}

function draftOf(assistant: Assistant | undefined, graphs: string[]): VersionDraft {
  const print = (value: unknown) => JSON.stringify(value ?? {}, null, 2);
  // The server keeps a copy of the settings in the configuration; one of them is enough.
  const { configurable: _settings, ...config } = (assistant?.config ?? {}) as JsonObject;
  return {
    graph: graphs[0] ?? "",
    name: assistant?.name ?? "",
    description: assistant?.description ?? "",
    context: print(assistant?.context),
    config: print(config),
    metadata: print(assistant?.metadata),
  };
}

function objectOf(source: string): JsonObject | undefined {
  const read = readJson(source);
  return "value" in read && isObject(read.value ?? {}) ? ((read.value ?? {}) as JsonObject) : undefined;
}

function TextField(props: { label: string; value: string; onChange: (value: string) => void }) {
  const id = `assistant-${props.label.toLowerCase()}`;
  return (
    <div className="field">
      <label htmlFor={id}>{props.label}</label>
      <input id={id} value={props.value} onChange={(event) => props.onChange(event.target.value)} />
    </div>
  );
}

function GraphField(props: { graphs: string[]; graph: string; onChange: (graph: string) => void }) {
  return (
    <div className="field">
      <label htmlFor="assistant-graph">{text.graph}</label>
      <select
        id="assistant-graph"
        value={props.graph}
        onChange={(event) => props.onChange(event.target.value)}
      >
        {props.graphs.map((graph) => (
          <option key={graph}>{graph}</option>
        ))}
      </select>
    </div>
  );
}

interface SourceProps {
  source: string;
  onChange: (source: string) => void;
}

function ObjectField({ label, hint, source, onChange }: SourceProps & { label: string; hint?: string }) {
  const problem = objectOf(source) ? undefined : text.notObject;
  return (
    <JsonArea
      id={`assistant-${label.toLowerCase()}`}
      label={label}
      text={source}
      onChange={onChange}
      problem={problem}
      rows={3}
      {...(hint && { hint })}
    />
  );
}

/** The settings: with a form if the graph declares them. */
function ContextField({ assistant, source, onChange }: SourceProps & { assistant: string }) {
  const schema = useQuery(schemasQuery(assistant)).data?.context_schema;
  const value = objectOf(source);
  if (!schema || !value) {
    return <ObjectField label={text.settings} hint={text.noSchema} source={source} onChange={onChange} />;
  }
  return (
    <fieldset className="file-drop">
      <legend>{text.settings}</legend>
      <SchemaForm
        idPrefix="assistant-context"
        schema={schema}
        value={value}
        onChange={(changed) => onChange(JSON.stringify(changed, null, 2))}
      />
    </fieldset>
  );
}
