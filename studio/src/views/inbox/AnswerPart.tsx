import { type FormEvent, useEffect, useId, useMemo, useRef, useState } from "react";

import type { InboxItem } from "../../api/types.ts";
import { type AnswerWay, changesBetween, type AnswerPart as Part } from "../../pure/answers.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { ChangeList } from "../../ui/ChangeList.tsx";
import { SchemaForm } from "../../ui/SchemaForm.tsx";
import { Ticks } from "../../ui/Ticks.tsx";
import { chooseWay, enteredOf, formOf, isComplete, isDirect, submitWay, takesFocus } from "./answering.ts";
import { changeDraft, enter, partOf, useDraft } from "./drafts.ts";

export interface AnswerPartProps {
  /** The items of the thread, which are answered together. */
  group: readonly InboxItem[];
  item: InboxItem;
  /** The place of the decision in the interrupt. */
  at: number;
  part: Part;
  isDisabled: boolean;
}

/** The answers to choose from, or the form of the chosen one. */
export function AnswerPart(props: AnswerPartProps) {
  const { item, at, part } = props;
  const { way: id, isDecided } = partOf(useDraft(item.interrupt.id), at);
  const [first] = part.ways;
  // If there is nothing else to choose, its form is open.
  const only = first && (part.ways.length === 1 || first.id === "answer") ? first : undefined;
  const way = part.ways.find((each) => each.id === id) ?? only;
  if (way && isDecided && !isDirect(props.group, formOf(item))) return <Decision {...props} way={way} />;
  if (way && way.input !== "none") return <WayForm key={way.id} {...props} way={way} />;
  return <Choices {...props} />;
}

function Choices({ group, item, at, part, isDisabled }: AnswerPartProps) {
  const id = useId();
  const [first] = part.ways;
  return (
    <ul className="inbox-ways" aria-label={text.answers}>
      {part.ways.map((way) => (
        <li key={way.id}>
          <Button
            kind={way === first ? "primary" : "plain"}
            aria-keyshortcuts={way.key}
            aria-describedby={`${id}-${way.id}`}
            disabled={isDisabled}
            onClick={() => chooseWay(group, item, at, way)}
          >
            {text.ways[way.id]}
            {way.key && (
              <span className="inbox-key" aria-hidden="true">
                {way.key}
              </span>
            )}
          </Button>
          <span id={`${id}-${way.id}`} className="small muted">
            <Ticks text={text.causes(way.id, item.kind, part.action)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Decision({ item, at, way, isDisabled }: AnswerPartProps & { way: AnswerWay }) {
  return (
    <p className="row inbox-decision">
      <strong>{text.decided(way.id)}</strong>
      <Button
        kind="quiet"
        disabled={isDisabled}
        onClick={() => {
          changeDraft(
            item.interrupt.id,
            at,
            way.input === "none" ? { way: undefined, isDecided: false } : { isDecided: false },
          );
        }}
      >
        {text.change}
      </Button>
    </p>
  );
}

/** The form of one answer. What is entered is kept until the server has it. */
function WayForm(props: AnswerPartProps & { way: AnswerWay }) {
  const { group, item, at, part, way, isDisabled } = props;
  const { id } = item.interrupt;
  const draft = useDraft(id);
  const [isTried, setTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const entered = enteredOf(draft, at, way);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (isComplete(draft, at, way)) submitWay(group, item, at, way);
    else
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  useEffect(() => {
    if (draft && takesFocus(id, at))
      form.current?.querySelector<HTMLElement>("textarea, input, select")?.focus();
    // The draft changes also when a key asks for a form that is open already.
  }, [id, at, draft]);
  const isEdit = way.original !== undefined;
  const send = isDirect(group, formOf(item)) ? text.send(way.id) : text.decide;
  return (
    <form
      ref={form}
      className="stack inbox-form"
      onSubmit={submit}
      aria-label={isEdit ? text.editTitle : text.formTitle}
    >
      {isEdit && <h3>{text.editTitle}</h3>}
      <SchemaForm
        schema={way.schema}
        name={way.input === "text" ? (text.yourText[way.id] ?? text.formTitle) : ""}
        value={entered}
        onChange={(value) => enter(id, at, way.id, value)}
        idPrefix={`${id}-${at}-${way.id}`}
        isDisabled={isDisabled}
        showProblems={isTried}
      />
      {isEdit && <Changes way={way} entered={entered} />}
      <p className="small muted">
        <Ticks text={text.causes(way.id, item.kind, part.action)} />
      </p>
      <div className="row">
        <Button kind="primary" type="submit" disabled={isDisabled}>
          {send}
        </Button>
        <OtherWay {...props} />
      </div>
    </form>
  );
}

/** The way back to the other answers. */
function OtherWay({ group, item, at, part, way }: AnswerPartProps & { way: AnswerWay }) {
  if (part.ways.length === 1) return null;
  const json = way.id === "answer" ? part.ways.find(({ id }) => id === "json") : undefined;
  if (json) return <Button onClick={() => chooseWay(group, item, at, json)}>{text.ways.json}</Button>;
  const close = () => changeDraft(item.interrupt.id, at, { way: undefined, isDecided: false });
  return <Button onClick={close}>{text.cancel}</Button>;
}

function Changes({ way, entered }: { way: AnswerWay; entered: ReturnType<typeof enteredOf> }) {
  const changes = useMemo(
    () => (way.original === undefined || entered === undefined ? [] : changesBetween(way.original, entered)),
    [way.original, entered],
  );
  return (
    <section className="stack" aria-live="off">
      <h4>{text.changes}</h4>
      {changes.length === 0 ? (
        <p className="muted small">{text.noChanges}</p>
      ) : (
        <ChangeList changes={changes} />
      )}
    </section>
  );
}
