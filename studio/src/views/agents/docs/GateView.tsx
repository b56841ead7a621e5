import { useQuery } from "@tanstack/react-query";

import { stateQuery } from "../../../api/queries.ts";
import type { Gate, GateCost } from "../../../pure/agent_question.ts";
import { docsPagesOf } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Facts } from "../parts/Facts.tsx";
import { Notes } from "../parts/Notes.tsx";
import { Section } from "../parts/Section.tsx";
import { TickedWord } from "../parts/Words.tsx";
import { Scores } from "./Scores.tsx";
import { Versions } from "./Versions.tsx";

const text = agents.docs;
const cost = ({ calls, tokens, cost }: GateCost) => text.cost(calls, tokens, cost);

/** Whether a page is refined once more: its scores, the questions of the next round, and the text so far. */
export function GateView({ gate, thread }: { gate: Gate; thread: string }) {
  const scores = gate.scores.map((overall, iteration) => ({
    iteration,
    overall,
    parts: undefined,
    misses: [],
  }));
  return (
    <div className="stack">
      <Section level={3} title={text.scores}>
        <Scores scores={scores} threshold={gate.threshold} />
        <Facts
          facts={[
            [text.spent, cost(gate.spent)],
            [text.estimate, cost(gate.estimate)],
          ]}
        />
      </Section>
      <Section level={3} title={text.questions}>
        <ol className="agent-numbers">
          {gate.questions.map((question, at) => (
            <li key={at}>
              <TickedWord text={question} />
            </li>
          ))}
        </ol>
      </Section>
      <Notes tone="plain" title={text.missing} notes={gate.missing} />
      <GateText agent={gate.agent} thread={thread} />
    </div>
  );
}

function GateText({ agent, thread }: { agent: string; thread: string }) {
  const { data } = useQuery({ ...stateQuery(thread), refetchInterval: false });
  const page = data && docsPagesOf(data).find((each) => each.agent === agent);
  if (!page) return null;
  return (
    <Section level={3} title={text.text}>
      <Versions versions={page.versions} />
    </Section>
  );
}
