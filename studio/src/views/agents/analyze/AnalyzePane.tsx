import { useMemo } from "react";

import type { ThreadState } from "../../../api/types.ts";
import { type Analysis, analysisOf, SECTIONS } from "../../../pure/citations.ts";
import { agents } from "../../../text/agents.ts";
import { Notes } from "../parts/Notes.tsx";
import { Section } from "../parts/Section.tsx";
import { Word, Words } from "../parts/Words.tsx";
import { ClaimRow } from "./ClaimRow.tsx";
import { Interview } from "./Interview.tsx";

const text = agents.analyze;

/** A thread of `analyze`: its claims next to the evidence that they cite, and the interview. */
export function AnalyzePane({ state }: { state: ThreadState }) {
  const analysis = useMemo(() => analysisOf(state.values), [state.values]);
  const cited = analysis.claims.filter(({ source }) => source);
  const supported = cited.filter(({ verdict }) => verdict === "supported").length;
  return (
    <div className="stack">
      <Section title={text.query}>
        <Words text={analysis.query} />
        {analysis.stopped && <p className="muted">{text.stopped(analysis.stopped)}</p>}
      </Section>
      <Notes title={text.degraded} notes={analysis.degraded ? [analysis.degraded] : []} />
      <Section title={text.claims}>
        {analysis.claims.length === 0 && analysis.gaps.size === 0 && <p className="muted">{text.noClaims}</p>}
        {cited.length > 0 && <p className="muted">{text.counts(supported, cited.length)}</p>}
        {SECTIONS.map((section) => (
          <Claims key={section} section={section} analysis={analysis} />
        ))}
      </Section>
      <Section title={text.interview}>
        <Interview turns={analysis.turns} />
      </Section>
      <NoteList analysis={analysis} />
    </div>
  );
}

function Claims({ section, analysis }: { section: string; analysis: Analysis }) {
  const claims = analysis.claims.filter((claim) => claim.section === section);
  const gap = analysis.gaps.get(section);
  if (claims.length === 0 && gap === undefined) return null;
  return (
    <Section level={3} title={text.sections[section] ?? section}>
      <ul className="stack">
        {claims.map((claim, at) => (
          <ClaimRow key={at} claim={claim} notes={analysis.notes} />
        ))}
      </ul>
      {gap !== undefined && <p className="muted">{gap ? text.missing(gap) : text.cut}</p>}
    </Section>
  );
}

function NoteList({ analysis }: { analysis: Analysis }) {
  if (analysis.notes.size === 0) return null;
  return (
    <Section title={text.inputs}>
      {[...analysis.notes].map(([name, content]) => (
        <details key={name} className="card">
          <summary>
            <Word text={name} />{" "}
            <span className="muted small">{text.lines(content.trimEnd().split("\n").length)}</span>
          </summary>
          <Words text={content} />
        </details>
      ))}
      <Notes
        tone="plain"
        title={text.skipped}
        notes={analysis.skipped.map(({ name, why }) => `${name}: ${why}`)}
      />
    </Section>
  );
}
