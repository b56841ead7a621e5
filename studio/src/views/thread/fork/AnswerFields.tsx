import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import type { JsonObject } from "../../../api/json.ts";
import { interruptsQuery } from "../../../api/queries.ts";
import type { InboxItem, Interrupt, RaisedInterrupt } from "../../../api/types.ts";
import { type AnswerPart, answerForm } from "../../../pure/answers.ts";
import { problemsOf } from "../../../pure/schema_form.ts";
import { fork } from "../../../text/fork.ts";
import { inbox } from "../../../text/inbox.ts";
import { SchemaForm } from "../../../ui/SchemaForm.tsx";
import { AgentQuestion } from "../../agents/AgentQuestion.tsx";
import { useDraft } from "../../start/draft.ts";
import type { ForkChange } from "./fork_actions.ts";

interface AnswerFieldsProps {
  draftKey: string;
  thread: string;
  graph: string;
  interrupts: readonly Interrupt[];
  onChange: (change: ForkChange | undefined) => void;
}

/** What a part of an answer holds: the chosen way, and what was entered for each way. */
interface PartDraft extends JsonObject {
  way: string;
  entered: JsonObject;
}

/** Answers to all interrupts of a checkpoint. */
export function AnswerFields({ draftKey, thread, graph, interrupts, onChange }: AnswerFieldsProps) {
  const { data: raised } = useQuery({ ...interruptsQuery(thread), refetchInterval: false });
  const items = useMemo(
    () => interrupts.map((interrupt) => askedItem(interrupt, thread, graph, raised)),
    [interrupts, thread, graph, raised],
  );
  const forms = useMemo(() => items.map(answerForm), [items]);
  const [drafts, setDrafts] = useDraft<Record<string, PartDraft>>(`${draftKey}:answers`, {});
  useEffect(() => {
    const given = forms.map((form, place) =>
      form.parts.map((part, at) => partAnswer(part, drafts[`${place}.${at}`])),
    );
    const answers = given.map((parts, place) => {
      const made = parts.flatMap((part) => (part ? [part.answer] : []));
      return made.length === parts.length ? forms[place]?.join(made) : undefined;
    });
    const isComplete = answers.every((answer) => answer !== undefined);
    const hasEffect = given.flat().some((part) => part?.hasEffect);
    onChange(isComplete ? { mode: "answer", answers, hasEffect } : undefined);
  }, [forms, drafts, onChange]);
  return items.map((item, place) => (
    <section className="card stack" key={item.interrupt.id}>
      <h3>{fork.question(place + 1, items.length)}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="fork-asked" aria-label={fork.question(place + 1, items.length)} tabIndex={0}>
        <AgentQuestion item={item} />
      </section>
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

/** An interrupt of a state as the inbox would show it. What kind it is, the thread's list of interrupts knows. */
function askedItem(
  interrupt: Interrupt,
  thread: string,
  graph: string,
  raised: readonly RaisedInterrupt[] | undefined,
): InboxItem {
  const kind = raised?.find(({ id }) => id === interrupt.id)?.kind ?? "";
  return { thread_id: thread, graph_id: graph, kind, interrupt } as InboxItem;
}

function partAnswer(part: AnswerPart, draft: PartDraft | undefined) {
  const way = part.ways.find(({ id }) => id === draft?.way);
  if (!way || !draft) return undefined;
  const entered = draft.entered[way.id] ?? way.initial;
  if (way.input !== "none" && problemsOf(way.schema, entered).length > 0) return undefined;
  return { answer: way.make(entered), hasEffect: way.hasEffect };
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
