import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";

import type { Json, JsonObject } from "../../api/json.ts";
import { schemasQuery } from "../../api/queries.ts";
import type { Cron } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, navigate, usePageLocation } from "../../app/location.ts";
import { scheduleInWords } from "../../pure/cron_words.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Loading } from "../../ui/Notice.tsx";
import { SchemaForm } from "../../ui/SchemaForm.tsx";
import { createCron, refreshOperate } from "./api.ts";
import { useAssistants } from "./assistants.ts";
import { Frame, useAction } from "./parts.tsx";

const text = operate.crons.form;
type Place = "own" | "ownDeleted" | "existing";
const PLACES: readonly Place[] = ["own", "ownDeleted", "existing"];

interface Draft {
  assistant: string;
  schedule: string;
  zone: string;
  input: Json;
  place: Place;
  thread: string;
  end: string;
}

/** Creates a cron. An address may name the assistant and the thread. */
export function CronForm() {
  const { query } = usePageLocation();
  const { assistants } = useAssistants();
  const thread = query.get("thread") ?? "";
  const [draft, setDraft] = useState<Draft>(() => ({
    assistant: query.get("assistant") ?? "",
    schedule: "0 9 * * 1-5",
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    input: {},
    place: thread ? "existing" : "own",
    thread,
    end: "",
  }));
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const create = useAction(sendDraft, (cron: Cron) => {
    void refreshOperate("crons");
    navigate(hrefOf(["crons", cron.cron_id]), "replace");
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.run(draft);
  };
  return (
    <Frame title={text.title}>
      <Link href={hrefOf(["crons"])}>{operate.crons.back}</Link>
      <form className="card stack operate-form" onSubmit={submit}>
        <AssistantField value={draft.assistant} onChange={(assistant) => change({ assistant, input: {} })} />
        <ScheduleFields draft={draft} onChange={change} />
        <PlaceFields draft={draft} onChange={change} />
        <InputFields draft={draft} onChange={change} />
        {create.error && <Failure error={create.error} />}
        <div className="dialog-actions">
          <Button kind="primary" type="submit" disabled={create.isBusy || draft.assistant === ""}>
            {create.isBusy ? operate.working : text.submit}
          </Button>
        </div>
      </form>
      {assistants.length === 0 && <p className="muted">{text.noAssistants}</p>}
    </Frame>
  );
}

function sendDraft(draft: Draft): Promise<Cron> {
  const json: JsonObject = {
    assistant_id: draft.assistant,
    schedule: draft.schedule.trim(),
    input: draft.input,
  };
  if (draft.zone.trim()) json.timezone = draft.zone.trim();
  if (draft.end) json.end_time = new Date(draft.end).toISOString();
  if (draft.place === "existing") return createCron(draft.thread.trim(), json);
  json.on_run_completed = draft.place === "own" ? "keep" : "delete";
  return createCron(undefined, json);
}

interface FieldsProps {
  draft: Draft;
  onChange: (part: Partial<Draft>) => void;
}

function AssistantField({ value, onChange }: { value: string; onChange: (id: string) => void }) {
  const { assistants } = useAssistants();
  const fieldId = useId();
  return (
    <div className="field">
      <label htmlFor={fieldId}>{text.assistant}</label>
      <select id={fieldId} required value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="" />
        {assistants.map((each) => (
          <option key={each.assistant_id} value={each.assistant_id}>
            {each.name}
          </option>
        ))}
      </select>
    </div>
  );
}

function ScheduleFields({ draft, onChange }: FieldsProps) {
  const fieldId = useId();
  const words = scheduleInWords(draft.schedule);
  return (
    <>
      <div className="field">
        <label htmlFor={fieldId}>{text.schedule}</label>
        <input
          id={fieldId}
          required
          spellCheck={false}
          value={draft.schedule}
          aria-describedby={`${fieldId}-help ${fieldId}-words`}
          onChange={(event) => onChange({ schedule: event.target.value })}
        />
        <p id={`${fieldId}-words`} role="status">
          {words ?? text.scheduleBad}
        </p>
        <p id={`${fieldId}-help`} className="muted small">
          {text.scheduleHelp}
        </p>
      </div>
      <fieldset className="operate-choices">
        <legend>{text.presets}</legend>
        <div className="row">
          {Object.entries(text.presetNames).map(([schedule, name]) => (
            <Button key={schedule} onClick={() => onChange({ schedule })}>
              {name}
            </Button>
          ))}
        </div>
      </fieldset>
      <ZoneAndEnd draft={draft} onChange={onChange} />
    </>
  );
}

/** All names of zones are a long list; the browser filters it. */
const ZONES: readonly string[] = Intl.supportedValuesOf("timeZone");

function ZoneAndEnd({ draft, onChange }: FieldsProps) {
  const fieldId = useId();
  return (
    <>
      <div className="field">
        <label htmlFor={`${fieldId}-zone`}>{text.zone}</label>
        <input
          id={`${fieldId}-zone`}
          list={`${fieldId}-zones`}
          value={draft.zone}
          aria-describedby={`${fieldId}-help`}
          onChange={(event) => onChange({ zone: event.target.value })}
        />
        <datalist id={`${fieldId}-zones`}>
          {ZONES.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <p id={`${fieldId}-help`} className="muted small">
          {text.zoneHelp}
        </p>
      </div>
      <div className="field">
        <label htmlFor={`${fieldId}-end`}>{text.end}</label>
        <input
          id={`${fieldId}-end`}
          type="datetime-local"
          value={draft.end}
          onChange={(event) => onChange({ end: event.target.value })}
        />
      </div>
    </>
  );
}

function PlaceFields({ draft, onChange }: FieldsProps) {
  const fieldId = useId();
  return (
    <>
      <fieldset className="operate-choices">
        <legend>{text.where}</legend>
        {PLACES.map((place) => (
          <label key={place}>
            <input
              type="radio"
              name={`${fieldId}-place`}
              checked={draft.place === place}
              onChange={() => onChange({ place })}
            />
            {text[place]}
          </label>
        ))}
      </fieldset>
      {draft.place === "existing" && (
        <div className="field">
          <label htmlFor={`${fieldId}-thread`}>{text.threadId}</label>
          <input
            id={`${fieldId}-thread`}
            required
            spellCheck={false}
            value={draft.thread}
            onChange={(event) => onChange({ thread: event.target.value })}
          />
        </div>
      )}
    </>
  );
}

function InputFields({ draft, onChange }: FieldsProps) {
  const fieldId = useId();
  const schemas = useQuery({ ...schemasQuery(draft.assistant), enabled: draft.assistant !== "" });
  if (draft.assistant === "") return <p className="muted">{text.inputWait}</p>;
  return (
    <fieldset className="operate-choices">
      <legend>{text.input}</legend>
      {schemas.data ? (
        <SchemaForm
          idPrefix={fieldId}
          schema={schemas.data.input_schema ?? {}}
          value={draft.input}
          onChange={(input) => onChange({ input })}
        />
      ) : schemas.error ? (
        <Failure error={schemas.error} onRetry={() => void schemas.refetch()} />
      ) : (
        <Loading what={text.input} />
      )}
    </fieldset>
  );
}
