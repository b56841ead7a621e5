/** Giving an answer: at once if it is the only one of its thread and needs nothing, otherwise as a draft until all are decided. */

import type { Json } from "../../api/json.ts";
import type { InboxItem } from "../../api/types.ts";
import { type AnswerForm, type AnswerKey, type AnswerWay, answerForm } from "../../pure/answers.ts";
import { problemsOf } from "../../pure/schema_form.ts";
import { inbox as text } from "../../text/inbox.ts";
import { changeDraft, type Draft, draftOf, partOf } from "./drafts.ts";
import { type GivenAnswer, outgoingOf, submitAnswers } from "./outbox.ts";

const forms = new WeakMap<InboxItem["interrupt"], AnswerForm>();

/** Returns how an item is answered. It is read once for each interrupt. */
export function formOf(item: InboxItem): AnswerForm {
  const known = forms.get(item.interrupt);
  if (known) return known;
  const form = answerForm(item);
  forms.set(item.interrupt, form);
  return form;
}

/** Whether an answer is sent as soon as it is given. */
export function isDirect(group: readonly InboxItem[], form: AnswerForm): boolean {
  return group.length === 1 && form.parts.length === 1;
}

/** Returns what is entered for an answer, or what its form begins with. */
export function enteredOf(draft: Draft, part: number, way: AnswerWay): Json | undefined {
  const { entered } = partOf(draft, part);
  return Object.hasOwn(entered, way.id) ? entered[way.id] : way.initial;
}

export function isComplete(draft: Draft, part: number, way: AnswerWay): boolean {
  return way.input === "none" || problemsOf(way.schema, enteredOf(draft, part, way)).length === 0;
}

let focusWanted: string | undefined;

/** Whether the form of an answer was just opened, so that its first field gets the focus. Says it once. */
export function takesFocus(interrupt: string, part: number): boolean {
  const isWanted = focusWanted === `${interrupt}/${part}`;
  if (isWanted) focusWanted = undefined;
  return isWanted;
}

/** Chooses an answer: sends it, keeps it as decided, or opens its form. */
export function chooseWay(group: readonly InboxItem[], item: InboxItem, part: number, way: AnswerWay): void {
  const { id } = item.interrupt;
  if (way.input !== "none") {
    focusWanted = `${id}/${part}`;
    changeDraft(id, part, { way: way.id, isDecided: false });
    return;
  }
  changeDraft(id, part, { way: way.id, isDecided: true });
  if (isDirect(group, formOf(item))) sendDecided([item]);
}

/** Takes what was entered into the form of an answer. */
export function submitWay(group: readonly InboxItem[], item: InboxItem, part: number, way: AnswerWay): void {
  changeDraft(item.interrupt.id, part, { way: way.id, isDecided: true });
  if (isDirect(group, formOf(item))) sendDecided([item]);
}

/** Chooses the answer of a key, for the first part without a decision. */
export function chooseByKey(group: readonly InboxItem[], item: InboxItem, key: AnswerKey): void {
  if (outgoingOf(item)) return;
  const { parts } = formOf(item);
  const draft = draftOf(item.interrupt.id);
  const open = parts.findIndex((_, at) => !partOf(draft, at).isDecided);
  const at = Math.max(open, 0);
  const way = parts[at]?.ways.find((each) => each.key === key);
  if (way) chooseWay(group, item, at, way);
}

/** Returns the answer to an item, if all its parts are decided. */
export function decidedAnswer(item: InboxItem, draft: Draft): GivenAnswer | undefined {
  const form = formOf(item);
  const ways: AnswerWay[] = [];
  const answers: Json[] = [];
  for (const [at, part] of form.parts.entries()) {
    const { way: id, isDecided } = partOf(draft, at);
    const way = part.ways.find((each) => each.id === id);
    if (!way || !isDecided || !isComplete(draft, at, way)) return undefined;
    ways.push(way);
    answers.push(way.make(enteredOf(draft, at, way)));
  }
  const names = [...new Set(ways.map((way) => text.ways[way.id]))].join(", ");
  return { item, answer: form.join(answers), way: names, hasEffect: ways.some((way) => way.hasEffect) };
}

/** Sends the answers to all items that are decided. */
export function sendDecided(group: readonly InboxItem[]): void {
  const given = group.map((item) => decidedAnswer(item, draftOf(item.interrupt.id)));
  const ready = given.filter((each) => each !== undefined);
  if (ready.length > 0) submitAnswers(ready);
}

/** Returns the answer that accepts an item as it is; `undefined` if it needs more. */
export function acceptance(item: InboxItem): GivenAnswer | undefined {
  const form = formOf(item);
  const [part, ...others] = form.parts;
  const way = part?.ways.find(({ id, input }) => id === "accept" && input === "none");
  if (!way || others.length > 0) return undefined;
  return { item, answer: form.join([way.make(undefined)]), way: text.ways.accept, hasEffect: true };
}
