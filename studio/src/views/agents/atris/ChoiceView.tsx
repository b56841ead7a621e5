import type { ChoiceQuestion } from "../../../pure/agent_question.ts";
import { agents } from "../../../text/agents.ts";
import { Facts } from "../parts/Facts.tsx";
import { Word, Words } from "../parts/Words.tsx";

const text = agents.atris;

/** A value or a choice that atris needs before it can make its call. */
export function ChoiceView({ question, parameter, kind, choices }: ChoiceQuestion) {
  return (
    <section className="agent-asked stack">
      <h3>{parameter ? text.missing(parameter) : text.question}</h3>
      <Words text={question} />
      <Facts
        facts={[
          [text.type, kind && <Word text={kind} />],
          [text.choices, choices.length > 0 && <Words text={choices.join("\n")} linesMax={20} />],
        ]}
      />
    </section>
  );
}
