import { useEffect, useMemo } from "react";

import { isObject, type Json, type JsonObject } from "../../../api/json.ts";
import type { InboxItem, Interrupt } from "../../../api/types.ts";
import { type AnswerPart, answerForm } from "../../../pure/answers.ts";
import { problemsOf } from "../../../pure/schema_form.ts";
import { fork } from "../../../text/fork.ts";
import { inbox } from "../../../text/inbox.ts";
import { JsonTree } from "../../../ui/JsonTree.tsx";
import { SchemaForm } from "../../../ui/SchemaForm.tsx";
import { useDraft } from "../../start/draft.ts";
import type { ForkChange } from "./fork_actions.ts";

interface AnswerFieldsProps {
  draftKey: string;
  interrupts: readonly Interrupt[];
  onChange: (change: ForkChange | undefined) => void;
}

/** What a part of an answer holds: the chosen way, and what was entered for each way. */
interface PartDraft extends JsonObject {
  way: string;
  entered: JsonObject;
}

/** Answers to all interrupts of a checkpoint. */
export function AnswerFields({ draftKey, interrupts, onChange }: AnswerFieldsProps) {
  const forms = useMemo(() => interrupts.map(formOf), [interrupts]);
  const [drafts, setDrafts] = useDraft<Record<string, PartDraft>>(`${draftKey}:answers`, {});
  useEffect(() => {
    const answers = forms.map((form, place) => {
      const parts = form.parts.map((part, at) => partAnswer(part, drafts[`${place}.${at}`]));
      return parts.every((each) => each !== undefined) ? form.join(parts) : undefined;
    });
    const isComplete = answers.every((answer) => answer !== undefined);
    onChange(isComplete ? { mode: "answer", answers } : undefined);
  }, [forms, drafts, onChange]);
  return interrupts.map((interrupt, place) => (
    <section className="card stack" key={interrupt.id}>
      <h3>{fork.question(place + 1, interrupts.length)}</h3>
      <Asked value={interrupt.value} />
      {forms[place]?.parts.map((part, at) => (
        <PartFields
          key={at}
          id={`fork-answer-${place}-${at}`}
          part={part}
          draft={drafts[`${place}.${at}`]}
          onChange={(draft) => setDrafts({ ...drafts, [`${place}.${at}`]: draft })}
        />
      ))}
    </section>
  ));
}

/** The interrupts of a state have no kind; the form works without it. */
function formOf(interrupt: Interrupt) {
  return answerForm({ interrupt, kind: "" } as InboxItem);
}

function partAnswer(part: AnswerPart, draft: PartDraft | undefined): Json | undefined {
  const way = part.ways.find(({ id }) => id === draft?.way);
  if (!way || !draft) return undefined;
  const entered = draft.entered[way.id] ?? way.initial;
  if (way.input !== "none" && problemsOf(way.schema, entered).length > 0) return undefined;
  return way.make(entered);
}

function Asked({ value }: { value: unknown }) {
  if (typeof value === "string") {
    return (
      <p className="fork-asked">
        <bdi>{value}</bdi>
      </p>
    );
  }
  const description =
    isObject(value) && typeof value.description === "string" ? value.description : undefined;
  if (description) return <pre className="fork-asked">{description}</pre>;
  return <JsonTree name={fork.question(1, 1)} value={value as Json} />;
}

interface PartFieldsProps {
  id: string;
  part: AnswerPart;
  draft: PartDraft | undefined;
  onChange: (draft: PartDraft) => void;
}

function PartFields({ id, part, draft, onChange }: PartFieldsProps) {
  const chosen = part.ways.find((way) => way.id === draft?.way);
  const entered = draft?.entered ?? {};
  return (
    <fieldset className="fork-choices">
      <legend>{fork.answerField}</legend>
      {part.ways.map((way) => (
        <label key={way.id}>
          <input
            type="radio"
            name={id}
            checked={way.id === draft?.way}
            onChange={() => onChange({ way: way.id, entered })}
          />
          {inbox.ways[way.id]}
        </label>
      ))}
      {chosen && chosen.input !== "none" && (
        <SchemaForm
          key={chosen.id}
          idPrefix={`${id}-${chosen.id}`}
          schema={chosen.schema}
          name={fork.answerField}
          value={entered[chosen.id] ?? chosen.initial}
          onChange={(value) => onChange({ way: chosen.id, entered: { ...entered, [chosen.id]: value } })}
        />
      )}
    </fieldset>
  );
}
