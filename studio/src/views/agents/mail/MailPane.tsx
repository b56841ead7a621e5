import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { isObject, textOf } from "../../../api/json.ts";
import { interruptsQuery } from "../../../api/queries.ts";
import type { ThreadState } from "../../../api/types.ts";
import { conversationOf, type Draft, draftsOf, mailOfInput } from "../../../pure/mail.ts";
import { agents } from "../../../text/agents.ts";
import { Notes } from "../parts/Notes.tsx";
import { Section } from "../parts/Section.tsx";
import { Drafts } from "./Drafts.tsx";
import { ReceivedMailCard } from "./ReceivedMailCard.tsx";
import { SentActions } from "./SentActions.tsx";
import { Triage } from "./Triage.tsx";

const text = agents.mail;

/** A thread of `email_assistant`: triage, the mail, its drafts, what was sent and to whom. */
export function MailPane({ thread, state }: { thread: string; state: ThreadState }) {
  const values = isObject(state.values) ? state.values : {};
  const { data: interrupts } = useQuery(interruptsQuery(thread));
  const drafts = useMemo<Draft[]>(() => draftsOf(conversationOf(state), interrupts), [state, interrupts]);
  const suspicion = Array.isArray(values.suspicion)
    ? values.suspicion.filter((reason) => typeof reason === "string")
    : [];
  const ended = textOf(values, "ended");
  return (
    <div className="stack">
      {values.redraft ? <p className="notice">{text.redraft}</p> : null}
      {ended && <p className="notice">{text.endings[ended] ?? ended}</p>}
      <Section title={text.triage}>
        <Triage
          isNamed
          classification={textOf(values, "classification_decision") ?? ""}
          reasoning={textOf(values, "reasoning") ?? ""}
          quote={textOf(values, "quote") ?? ""}
        />
        <Notes title={text.suspicious} notes={suspicion} />
        <Notes title={text.degraded} notes={values.degraded ? [String(values.degraded)] : []} />
      </Section>
      <Section title={text.received}>
        <ReceivedMailCard mail={mailOfInput(values.email_input)} isNamed />
        {values.marked_as_read === true && <p className="muted">{text.markedRead}</p>}
      </Section>
      <Section title={text.drafts}>
        <Drafts drafts={drafts} />
      </Section>
      <SentActions values={values} drafts={drafts} />
    </div>
  );
}
