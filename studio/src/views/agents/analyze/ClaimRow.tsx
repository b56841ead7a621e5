import type { Claim } from "../../../pure/citations.ts";
import { agents } from "../../../text/agents.ts";
import { Badge, type Tone } from "../../../ui/Badge.tsx";
import { Word } from "../parts/Words.tsx";
import { Evidence } from "./Evidence.tsx";

const text = agents.analyze;
const tones: Record<Claim["verdict"], Tone> = {
  supported: "good",
  weak: "warn",
  unsupported: "bad",
  misquoted: "bad",
  said: "plain",
};

/** A claim, and next to it what it cites and what the check found. */
export function ClaimRow({ claim, notes }: { claim: Claim; notes: ReadonlyMap<string, string> }) {
  const { source, verdict } = claim;
  return (
    <li className="agent-beside agent-claim">
      <div className="stack">
        <p dir="auto">
          <Word text={claim.text} />
        </p>
        {claim.contradicts && (
          <p className="small">
            <Badge tone="bad">{text.contradicts}</Badge>{" "}
            <q>
              <Word text={claim.contradicts} />
            </q>
          </p>
        )}
      </div>
      <div className="stack">
        <p className="row small">
          <Badge tone={tones[verdict]}>{text.verdict[verdict]}</Badge>
          <span className="muted">{text.verdictWhy[verdict]}</span>
        </p>
        {source && <Evidence notes={notes} source={source} />}
        {source && verdict === "misquoted" && notes.has(source.file) && (
          <p className="small">
            {text.quoted}:{" "}
            <q>
              <Word text={source.quote} />
            </q>
          </p>
        )}
        {claim.isMoved && <p className="small muted">{text.moved}</p>}
      </div>
    </li>
  );
}
