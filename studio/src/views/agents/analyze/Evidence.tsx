import { useMemo } from "react";

import { type Excerpt, excerptOf, type Source, splitAtQuote } from "../../../pure/citations.ts";
import { agents } from "../../../text/agents.ts";
import { Word } from "../parts/Words.tsx";

const text = agents.analyze;

/** A place in the notes: the line itself, with its neighbours, and the quotation marked in it. */
export function Evidence({ notes, source }: { notes: ReadonlyMap<string, string>; source: Source }) {
  const excerpt = useMemo(() => excerptOf(notes, source.file, source.line), [notes, source]);
  return (
    <figure className="agent-evidence">
      <figcaption className="small muted">
        <Word text={text.place(source.file, source.line)} />
      </figcaption>
      {excerpt ? (
        <Lines excerpt={excerpt} quote={source.quote} />
      ) : (
        <q>
          <Word text={source.quote} />
        </q>
      )}
    </figure>
  );
}

function Lines({ excerpt, quote }: { excerpt: Excerpt; quote: string }) {
  return (
    <ol>
      {excerpt.lines.map((line) => (
        <li key={line.number} value={line.number} data-cited={line.isCited}>
          <span className="agent-line-number" aria-hidden="true">
            {line.number}
          </span>
          {line.isCited ? <Marked line={line.text} quote={quote} /> : <Word text={line.text} />}
        </li>
      ))}
    </ol>
  );
}

function Marked({ line, quote }: { line: string; quote: string }) {
  const [head, found, tail] = splitAtQuote(line, quote);
  return (
    <span dir="auto">
      <Word text={head} />
      {found && (
        <mark>
          <Word text={found} />
        </mark>
      )}
      <Word text={tail} />
    </span>
  );
}
