import type { PageScore } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Notes } from "../parts/Notes.tsx";

const text = agents.docs;
const parts = Object.entries(text.parts) as [keyof typeof text.parts, string][];

/** Scores by round, as bars and numbers. */
export function Scores({ scores, threshold }: { scores: PageScore[]; threshold: number }) {
  if (scores.length === 0) return <p className="muted">{text.unscored}</p>;
  const withParts = scores.some((score) => score.parts);
  return (
    <div className="stack">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="table-scroll" aria-label={text.scores} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{text.iteration}</th>
              <th scope="col">{`${text.overall} (${text.enough(threshold)})`}</th>
              {withParts &&
                parts.map(([name, title]) => (
                  <th key={name} scope="col" className="number">
                    {title}
                  </th>
                ))}
            </tr>
          </thead>
          <tbody>
            {scores.map((score, at) => (
              <tr key={at}>
                <td>{score.iteration === 0 ? text.firstDraft : text.version(score.iteration)}</td>
                <td>
                  <ScoreBar score={score.overall} threshold={threshold} />
                </td>
                {withParts &&
                  parts.map(([name]) => (
                    <td key={name} className="number">
                      {score.parts?.[name]}
                    </td>
                  ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <Notes title={text.misses} notes={scores.at(-1)?.misses ?? []} />
    </div>
  );
}

export function ScoreBar({ score, threshold }: { score: number; threshold: number }) {
  return (
    <span className="agent-score" data-enough={score >= threshold}>
      <span className="agent-score-bar" aria-hidden="true">
        <span style={{ inlineSize: `${Math.min(score, 100)}%` }} />
        <i style={{ insetInlineStart: `${Math.min(threshold, 100)}%` }} />
      </span>
      {score}
    </span>
  );
}
