import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { isObject, type Json } from "../../../api/json.ts";
import { runsQuery, schemasQuery } from "../../../api/queries.ts";
import type { TreeCheckpoint } from "../../../api/types.ts";
import { readJson } from "../../../pure/input_form.ts";
import { fork } from "../../../text/fork.ts";
import { SchemaForm } from "../../../ui/SchemaForm.tsx";
import { useDraft } from "../../start/draft.ts";
import { JsonArea } from "../../start/JsonArea.tsx";
import type { ForkChange } from "./fork_actions.ts";

interface InputFieldsProps {
  draftKey: string;
  thread: string;
  assistant: string;
  checkpoint: TreeCheckpoint;
  onChange: (change: ForkChange | undefined) => void;
}

/** Another input: with a form if the graph describes its inputs, else as JSON. Begins with the input that was given here. */
export function InputFields({ draftKey, thread, assistant, checkpoint, onChange }: InputFieldsProps) {
  const schema = useQuery(schemasQuery(assistant)).data?.input_schema;
  const runs = useQuery({ ...runsQuery(thread), refetchInterval: false });
  const [text, setText] = useDraft<string>(`${draftKey}:input`, "");
  const given = inputOf(runs.data?.find((run) => run.run_id === checkpoint.run_id)?.kwargs);
  const value = useMemo(() => {
    const read = text === "" ? { value: given } : readJson(text);
    return "value" in read ? read.value : undefined;
  }, [text, given]);
  useEffect(
    () => onChange(value === undefined ? undefined : { mode: "input", input: value }),
    [value, onChange],
  );
  if (schema && Object.keys(isObject(schema.properties) ? schema.properties : {}).length > 0) {
    return (
      <SchemaForm
        idPrefix="fork-input"
        schema={schema}
        value={value}
        onChange={(changed) => setText(JSON.stringify(changed))}
      />
    );
  }
  const shown = text || (given === undefined ? "" : JSON.stringify(given, null, 2));
  return <JsonArea id="fork-input" label={fork.inputField} text={shown} onChange={setText} />;
}

function inputOf(kwargs: unknown): Json | undefined {
  const input = isObject(kwargs) ? kwargs.input : undefined;
  return input === null ? undefined : input;
}
