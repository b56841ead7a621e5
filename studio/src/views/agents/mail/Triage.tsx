import { agents } from "../../../text/agents.ts";
import { Badge, type Tone } from "../../../ui/Badge.tsx";
import { Facts } from "../parts/Facts.tsx";
import { Word } from "../parts/Words.tsx";

const text = agents.mail;
const tones: Record<string, Tone> = { respond: "accent", notify: "warn" };

/** What triage took a mail for, why, and the sentence that decided it. */
export function Triage(props: {
  classification: string;
  reasoning: string;
  quote: string;
  /** Whether a heading above it says what it is. */
  isNamed?: boolean;
}) {
  const { classification, reasoning, quote, isNamed = false } = props;
  if (!classification) return <p className="muted">{text.notTriaged}</p>;
  return (
    <div className="stack">
      <p className="row">
        {!isNamed && <strong>{text.triage}</strong>}
        <Badge tone={tones[classification] ?? "plain"}>
          {text.classification[classification] ?? <Word text={classification} />}
        </Badge>
      </p>
      <Facts
        facts={[
          [text.why, reasoning && <Word text={reasoning} />],
          [
            text.quote,
            quote && (
              <q>
                <Word text={quote} />
              </q>
            ),
          ],
        ]}
      />
    </div>
  );
}
