import type { MailQuestion, NoticeQuestion } from "../../../pure/agent_question.ts";
import { agents } from "../../../text/agents.ts";
import { Notes } from "../parts/Notes.tsx";
import { Words } from "../parts/Words.tsx";
import { ReceivedMailCard } from "./ReceivedMailCard.tsx";
import { Triage } from "./Triage.tsx";

const text = agents.mail;

/** A mail that triage shows to the person. */
export function NoticeView({ mail, classification, reasoning, quote, suspicion }: NoticeQuestion) {
  return (
    <div className="stack">
      <Notes title={text.suspicious} notes={suspicion} />
      {suspicion.length === 0 && (
        <Triage classification={classification} reasoning={reasoning} quote={quote} />
      )}
      <ReceivedMailCard mail={mail} title={text.notice} />
    </div>
  );
}

/** What the assistant wants to know about a mail. */
export function MailQuestionView({ question, mail }: MailQuestion) {
  return (
    <div className="stack">
      <section className="agent-asked">
        <h3>{text.question}</h3>
        <Words text={question} />
      </section>
      <ReceivedMailCard mail={mail} />
    </div>
  );
}
