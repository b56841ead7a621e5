import type { Check } from "../../../pure/change_set.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Section } from "../parts/Section.tsx";
import { Word } from "../parts/Words.tsx";

const text = agents.sheet;

/** What was checked before a person was asked. */
export function Checks({ checks, level = 3 }: { checks: Check[]; level?: 2 | 3 }) {
  if (checks.length === 0) return null;
  return (
    <Section level={level} title={text.checks}>
      <ul className="agent-list">
        {checks.map((check, at) => (
          <li key={at} className="row">
            <Badge tone={check.isOk ? "good" : "bad"}>{check.isOk ? text.checkOk : text.checkFailed}</Badge>
            <Word text={check.name} />
            <span className="small muted">
              <Word text={check.found} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
