import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { stateQuery } from "../../../api/queries.ts";
import { analysisOf, type Related, relatedLines } from "../../../pure/citations.ts";
import { agents } from "../../../text/agents.ts";
import { Words } from "../parts/Words.tsx";
import { Evidence } from "./Evidence.tsx";
import { Interview } from "./Interview.tsx";

const text = agents.analyze;

/** A question of the interview, with the lines of the notes that it is about next to it. */
export function InterviewView(props: { question: string; isTitle: boolean; thread: string }) {
  const { question, isTitle, thread } = props;
  const { data } = useQuery({ ...stateQuery(thread), refetchInterval: false });
  const analysis = useMemo(() => analysisOf(data?.values), [data?.values]);
  const related = useMemo(() => relatedLines(question, analysis.notes), [question, analysis.notes]);
  return (
    <div className="stack">
      <div className="agent-beside">
        {!isTitle && (
          <section className="agent-asked stack">
            <h3>{text.question}</h3>
            <Words text={question} />
          </section>
        )}
        <section className="stack">
          <h3>{text.evidence}</h3>
          {data && related.length === 0 && <p className="muted">{text.noEvidence}</p>}
          {(["cited", "similar"] as const).map((how) => (
            <RelatedList key={how} how={how} related={related} notes={analysis.notes} />
          ))}
        </section>
      </div>
      {analysis.turns.length > 1 && (
        <details>
          <summary>{text.interview}</summary>
          <Interview turns={analysis.turns} />
        </details>
      )}
    </div>
  );
}

function RelatedList(props: { how: Related["how"]; related: Related[]; notes: Map<string, string> }) {
  const found = props.related.filter(({ how }) => how === props.how);
  if (found.length === 0) return null;
  return (
    <div className="stack">
      <p className="small muted">{text[props.how]}</p>
      {found.map((each) => (
        <Evidence key={`${each.file}:${each.line}`} notes={props.notes} source={each} />
      ))}
    </div>
  );
}
