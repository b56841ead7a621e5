import { isObject, type JsonObject, textOf } from "../../../api/json.ts";
import { type Draft, recipientsOf, replyRecipients } from "../../../pure/mail.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Facts } from "../parts/Facts.tsx";
import { Section } from "../parts/Section.tsx";
import { Word } from "../parts/Words.tsx";
import { Recipients } from "./Recipients.tsx";

const text = agents.mail;

/** What left the program: each effect with the key that its receiver knows, and what was learned from the answers. */
export function SentActions({ values, drafts }: { values: JsonObject; drafts: Draft[] }) {
  const done = Array.isArray(values.done) ? values.done.filter(isObject) : [];
  return (
    <>
      <Section title={text.sent}>
        {done.length === 0 && <p className="muted">{text.nothingSent}</p>}
        {done.map((action, at) => (
          <SentAction key={at} action={action} values={values} drafts={drafts} />
        ))}
      </Section>
      <LearnedLines learned={values.learned} />
    </>
  );
}

function SentAction(props: { action: JsonObject; values: JsonObject; drafts: Draft[] }) {
  const { action, values, drafts } = props;
  const isMail = textOf(action, "tool") === "send_email_tool";
  const receipt = textOf(action, "receipt") ?? "";
  const draft = drafts.find((each) => each.outcome === "sent" && each.result.includes(receipt));
  const envelope = isMail ? replyRecipients(values.email_input, draft?.added) : undefined;
  return (
    <div className="card stack">
      <p className="row">
        <strong>{isMail ? text.sentMail : text.scheduled}</strong>
      </p>
      <Facts
        facts={[
          [
            text.key,
            <code key="key">
              <Word text={receipt} />
            </code>,
          ],
        ]}
      />
      {envelope && <Recipients title={text.receivedBy} recipients={recipientsOf(envelope)} />}
    </div>
  );
}

function LearnedLines({ learned }: { learned: unknown }) {
  const all = Array.isArray(learned) ? learned.filter(isObject) : [];
  if (all.length === 0) return null;
  return (
    <Section title={text.learned}>
      {all.map((change, at) => (
        <div key={at} className="card stack">
          <p className="row">
            <Word text={textOf(change, "memory") ?? ""} />
            <Badge>{textOf(change, "proposal") ? text.proposed : text.inEffect}</Badge>
          </p>
          <ul>
            {(Array.isArray(change.diff) ? change.diff : []).map((line, number) => (
              <li key={number} className={String(line).startsWith("-") ? "removed" : "added"}>
                <Word text={String(line)} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Section>
  );
}
