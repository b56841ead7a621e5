import type { DocsPage } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Markdown } from "../../../ui/Markdown.tsx";
import { Notes } from "../parts/Notes.tsx";
import { Section } from "../parts/Section.tsx";
import { Word } from "../parts/Words.tsx";
import { Scores } from "./Scores.tsx";
import { Versions } from "./Versions.tsx";

const text = agents.docs;

/** Everything about one page of `docs`. */
export function PageDetails({ page }: { page: DocsPage }) {
  return (
    <>
      <Section title={text.scores}>
        <Scores scores={page.scores} threshold={page.threshold} />
        {page.stopped && <p className="muted">{text.stopped(page.stopped)}</p>}
      </Section>
      <Section title={text.compare}>
        <Versions versions={page.versions} />
      </Section>
      {page.questions.length > 0 && (
        <Section title={page.isFinished ? text.allQuestions : text.questions}>
          <ol className="agent-numbers">
            {page.questions.map((question, at) => (
              <li key={at}>
                <Word text={question} />
              </li>
            ))}
          </ol>
        </Section>
      )}
      <Notes tone="plain" title={text.missing} notes={page.missing} />
      <Notes tone="plain" title={text.warnings} notes={page.warnings} />
      {page.markdown && (
        <details className="card">
          <summary>{text.wholePage}</summary>
          <div className="agent-page">
            <Markdown text={page.markdown} />
          </div>
        </details>
      )}
    </>
  );
}
