import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { isObject, type Json, type JsonObject } from "../../../api/json.ts";
import { assistantsQuery, schemasQuery } from "../../../api/queries.ts";
import { readJson, settingsOf } from "../../../pure/input_form.ts";
import { fork } from "../../../text/fork.ts";
import { Failure, Loading } from "../../../ui/Notice.tsx";
import { SchemaForm } from "../../../ui/SchemaForm.tsx";
import { versionsQuery } from "../../start/assistant_actions.ts";
import { useDraft } from "../../start/draft.ts";
import { JsonArea } from "../../start/JsonArea.tsx";
import type { ForkChange } from "./fork_actions.ts";

interface AssistantFieldsProps {
  draftKey: string;
  graph: string;
  assistant: string;
  onChange: (change: ForkChange | undefined) => void;
}

/** Another assistant of the same graph, one of its versions, and its settings, which can be changed for this fork. */
export function AssistantFields({ draftKey, graph, assistant, onChange }: AssistantFieldsProps) {
  const all = useQuery(assistantsQuery);
  const [chosen, setChosen] = useDraft(`${draftKey}:assistant`, assistant);
  const assistants = all.data?.filter((each) => each.graph_id === graph) ?? [];
  const found = assistants.find((each) => each.assistant_id === chosen) ?? assistants[0];
  if (all.error) return <Failure error={all.error} onRetry={() => void all.refetch()} />;
  if (!found) return <Loading what={fork.assistant} />;
  return (
    <div className="stack">
      <div className="field">
        <label htmlFor="fork-assistant">{fork.assistant}</label>
        <select
          id="fork-assistant"
          value={found.assistant_id}
          onChange={(event) => setChosen(event.target.value)}
        >
          {assistants.map((each) => (
            <option key={each.assistant_id} value={each.assistant_id}>
              {each.name}
            </option>
          ))}
        </select>
      </div>
      <VersionFields
        key={found.assistant_id}
        draftKey={draftKey}
        assistant={found.assistant_id}
        onChange={onChange}
      />
    </div>
  );
}

function VersionFields({ draftKey, assistant, onChange }: Omit<AssistantFieldsProps, "graph">) {
  const versions = useQuery(versionsQuery(assistant));
  const all = useQuery(assistantsQuery);
  const latest = all.data?.find((each) => each.assistant_id === assistant);
  const [chosen, setChosen] = useDraft(`${draftKey}:version:${assistant}`, latest?.version ?? 1);
  const version = versions.data?.find((each) => each.version === chosen);
  if (versions.error) return <Failure error={versions.error} onRetry={() => void versions.refetch()} />;
  if (!version || !latest) return <Loading what={fork.version} />;
  const settings = settingsOf(version as unknown as Settings, latest as unknown as Settings);
  return (
    <>
      <div className="field">
        <label htmlFor="fork-version">{fork.version}</label>
        <select id="fork-version" value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
          {versions.data?.map((each) => (
            <option key={each.version} value={each.version}>
              {fork.versionName(each.version, each.version === latest.version)}
            </option>
          ))}
        </select>
      </div>
      {settings.inherited.length > 0 && <p className="muted small">{fork.inherited(settings.inherited)}</p>}
      <SettingsField
        key={chosen}
        draftKey={`${draftKey}:settings:${assistant}:${chosen}`}
        assistant={assistant}
        settings={settings}
        onChange={onChange}
      />
    </>
  );
}

interface Settings {
  config: JsonObject;
  context: JsonObject;
}

function SettingsField(props: Omit<AssistantFieldsProps, "graph"> & { settings: Settings }) {
  const { draftKey, assistant, settings, onChange } = props;
  const schema = useQuery(schemasQuery(assistant)).data?.context_schema;
  const [text, setText] = useDraft(draftKey, JSON.stringify(settings.context, null, 2));
  const { config } = settings;
  const models = modelsOf(schema);
  const context = useMemo(() => {
    const read = readJson(text);
    return "value" in read && isObject(read.value) ? read.value : undefined;
  }, [text]);
  useEffect(
    () => onChange(context && { mode: "assistant", assistant, config, context }),
    [context, config, assistant, onChange],
  );
  return (
    <>
      {!schema && <p className="muted small">{fork.noSettings}</p>}
      {models && models.length <= 1 && <p className="muted small">{fork.oneModel}</p>}
      {schema ? (
        <SchemaForm
          idPrefix="fork-settings"
          schema={schema}
          value={context}
          onChange={(changed) => setText(JSON.stringify(changed))}
        />
      ) : (
        <JsonArea id="fork-settings" label={fork.settings} text={text} onChange={setText} rows={3} />
      )}
    </>
  );
}

/** The models that the context of a run may name; `undefined` if the graph does not say. */
function modelsOf(schema: unknown): Json[] | undefined {
  const properties = isObject(schema) ? schema.properties : undefined;
  const model = isObject(properties) ? properties.model : undefined;
  return isObject(model) && Array.isArray(model.enum) ? model.enum : undefined;
}
