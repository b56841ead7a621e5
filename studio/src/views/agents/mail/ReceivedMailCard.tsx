import type { ReceivedMail } from "../../../pure/mail.ts";
import { agents } from "../../../text/agents.ts";
import { Facts } from "../parts/Facts.tsx";
import { Word, Words } from "../parts/Words.tsx";

const text = agents.mail;
const word = (value: string) => value && <Word text={value} />;

/** A mail that arrived. A stranger wrote all of it. */
export function ReceivedMailCard(props: { mail: ReceivedMail; title?: string; isNamed?: boolean }) {
  const { mail, title = text.received, isNamed = false } = props;
  return (
    <article className="agent-mail" data-kind="received" aria-label={title}>
      {!isNamed && <p className="agent-mail-kind small muted">{title}</p>}
      <h3>{mail.subject ? <Word text={mail.subject} /> : text.noSubject}</h3>
      <Facts
        facts={[
          [text.from, word(mail.from)],
          [text.to, word(mail.to)],
          [text.cc, word(mail.cc)],
          [text.date, word(mail.date)],
          [text.attachments, word(mail.attached)],
          [text.leftOut, word(mail.leftOut)],
        ]}
      />
      {mail.body ? <Words text={mail.body} /> : <p className="muted">{text.noText}</p>}
    </article>
  );
}
