import { useMemo } from "react";

import type { Draft } from "../../../pure/mail.ts";
import { diffWords } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Pieces } from "../docs/Pieces.tsx";
import { Word, Words } from "../parts/Words.tsx";

const text = agents.mail;

/** Every draft, with what became of it and what changed since the one before. */
export function Drafts({ drafts }: { drafts: Draft[] }) {
  if (drafts.length === 0) return <p className="muted">{text.noDrafts}</p>;
  return (
    <ol className="stack">
      {drafts.map((draft, at) => (
        <li key={draft.id || at} className="card stack">
          <p className="row">
            <strong>{text.draft(at + 1)}</strong>
            <Badge tone={draft.outcome === "sent" ? "good" : "plain"}>{text.outcome[draft.outcome]}</Badge>
            {draft.isEdited && <Badge tone="accent">{text.edited}</Badge>}
          </p>
          <Words text={draft.text} />
          <DraftChanges before={drafts[at - 1]} after={draft} />
          {draft.outcome === "refused" && (
            <p className="small muted">
              <Word text={draft.result} />
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}

function DraftChanges({ before, after }: { before: Draft | undefined; after: Draft }) {
  const pieces = useMemo(() => (before ? diffWords(before.text, after.text) : []), [before, after]);
  if (!pieces.some(({ kind }) => kind !== "same")) return null;
  return (
    <details>
      <summary>{text.changedFrom}</summary>
      <div className="agent-words-text">
        <Pieces pieces={pieces} />
      </div>
    </details>
  );
}
