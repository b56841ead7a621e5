import { isObject, type JsonObject, textOf } from "../../../api/json.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Section } from "../parts/Section.tsx";
import { Words } from "../parts/Words.tsx";

const text = agents.sheet;

/** Every step that ran, with its code and what it showed to the model. */
export function Journal({ journal }: { journal: unknown }) {
  const entries = Array.isArray(journal) ? journal.filter(isObject) : [];
  if (entries.length === 0) return null;
  return (
    <Section title={text.steps}>
      <ol className="stack">
        {entries.map((entry, at) => (
          <JournalStep key={at} entry={entry} />
        ))}
      </ol>
    </Section>
  );
}

function JournalStep({ entry }: { entry: JsonObject }) {
  const isOk = entry.ok === true;
  const step = typeof entry.step === "number" ? entry.step : 0;
  return (
    <li className="card stack">
      <p className="row">
        <strong>{text.step(step, textOf(entry, "tool") ?? "")}</strong>
        <Badge tone={isOk ? "good" : "bad"}>{isOk ? text.ok : text.failed}</Badge>
      </p>
      <Words isCode text={textOf(entry, "input") ?? ""} />
      <Words text={textOf(entry, "observation") ?? ""} linesMax={12} />
    </li>
  );
}
