import type { ReplyQuestion } from "../../../pure/agent_question.ts";
import { type Envelope, recipientsOf, type ToneDraft } from "../../../pure/mail.ts";
import { agents } from "../../../text/agents.ts";
import { Facts } from "../parts/Facts.tsx";
import { Notes } from "../parts/Notes.tsx";
import { Word, Words } from "../parts/Words.tsx";
import { ReceivedMailCard } from "./ReceivedMailCard.tsx";
import { Recipients } from "./Recipients.tsx";

const text = agents.mail;

/** A mail that waits to be sent, as a mail, with the one that it answers below. */
export function ReplyView({ reply, body, tones }: ReplyQuestion) {
  return (
    <div className="stack">
      <Notes tone="bad" title={text.warning} notes={reply.warning ? [reply.warning] : []} />
      <OutgoingMail envelope={reply.envelope} body={body} />
      <Tones tones={tones} body={body} />
      {reply.original && <ReceivedMailCard mail={reply.original} />}
      <Notes tone="plain" title={agents.notes} notes={reply.notes} />
    </div>
  );
}

function OutgoingMail({ envelope, body }: { envelope: Envelope; body: string }) {
  const recipients = recipientsOf(envelope);
  return (
    <article className="agent-mail" data-kind="outgoing" aria-label={text.outgoing}>
      <p className="agent-mail-kind small muted">{text.outgoing}</p>
      <Facts
        facts={[
          [text.subject, <Word key="subject" text={envelope.subject} />],
          [text.from, <Word key="from" text={envelope.from} />],
        ]}
      />
      <Recipients title={text.recipients(recipients.length)} recipients={recipients} />
      <Words text={body} linesMax={400} charsMax={20_000} />
      {envelope.attachments.length > 0 && (
        <Facts facts={[[text.attachments, <Word key="files" text={envelope.attachments.join(", ")} />]]} />
      )}
      {envelope.isForward && <p>{text.forwards}</p>}
    </article>
  );
}

function Tones({ tones, body }: { tones: ToneDraft[]; body: string }) {
  if (tones.length === 0) return null;
  return (
    <section className="stack" aria-label={text.tones}>
      <h3>{text.tones}</h3>
      <p className="muted small">{text.tonesHint}</p>
      <div className="agent-columns">
        {[{ tone: text.asItIs, text: body }, ...tones].map((draft, at) => (
          <div key={at} className="card">
            <h4 className="agent-tone">
              <Word text={draft.tone} />
            </h4>
            <Words text={draft.text} />
          </div>
        ))}
      </div>
    </section>
  );
}
