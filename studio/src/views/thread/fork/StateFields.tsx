import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { isObject, type Json, type JsonObject } from "../../../api/json.ts";
import { schemasQuery } from "../../../api/queries.ts";
import { inputNames, readJson } from "../../../pure/input_form.ts";
import { fork } from "../../../text/fork.ts";
import { Failure, Loading } from "../../../ui/Notice.tsx";
import { useDraft } from "../../start/draft.ts";
import { JsonArea } from "../../start/JsonArea.tsx";
import type { ForkChange } from "./fork_actions.ts";

interface StateFieldsProps {
  draftKey: string;
  assistant: string;
  values: Json;
  onChange: (change: ForkChange | undefined) => void;
}

/** New values of chosen channels, as JSON. Only inputs of the graph can be written from outside. */
export function StateFields({ draftKey, assistant, values, onChange }: StateFieldsProps) {
  const schemas = useQuery(schemasQuery(assistant));
  const [texts, setTexts] = useDraft<Record<string, string>>(`${draftKey}:state`, {});
  useEffect(() => onChange(stateChange(texts)), [texts, onChange]);
  const names = useMemo(() => inputNames(schemas.data?.input_schema), [schemas.data]);
  if (schemas.error) return <Failure error={schemas.error} onRetry={() => void schemas.refetch()} />;
  if (!schemas.data) return <Loading what={fork.channels} />;
  if (names.length === 0) return <p>{fork.noChannels}</p>;
  const state = isObject(values) ? values : {};
  const closed = Object.keys(state).filter((name) => !names.includes(name));
  const toggle = (name: string) => {
    const { [name]: held, ...others } = texts;
    setTexts(
      held === undefined ? { ...others, [name]: JSON.stringify(state[name] ?? null, null, 2) } : others,
    );
  };
  return (
    <div className="stack">
      <fieldset className="fork-choices">
        <legend>{fork.channels}</legend>
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={name in texts} onChange={() => toggle(name)} />
            <bdi className="mono">{name}</bdi>
          </label>
        ))}
      </fieldset>
      {names
        .filter((name) => name in texts)
        .map((name) => (
          <JsonArea
            key={name}
            id={`fork-channel-${name}`}
            label={fork.channelValue(name)}
            text={texts[name] ?? ""}
            onChange={(text) => setTexts({ ...texts, [name]: text })}
          />
        ))}
      {closed.length > 0 && (
        <p className="muted small">
          <bdi>{fork.closedChannels(closed)}</bdi>
        </p>
      )}
    </div>
  );
}

function stateChange(texts: Record<string, string>): ForkChange | undefined {
  const values: JsonObject = {};
  for (const [name, text] of Object.entries(texts)) {
    const read = readJson(text);
    if ("problem" in read || read.value === undefined) return undefined;
    values[name] = read.value;
  }
  return Object.keys(values).length > 0 ? { mode: "state", values } : undefined;
}
