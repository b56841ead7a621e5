import type { ApiCall, ApiHeader } from "../../../pure/agent_question.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Notes } from "../parts/Notes.tsx";
import { Section } from "../parts/Section.tsx";
import { Word, Words } from "../parts/Words.tsx";

const text = agents.atris;

/** The exact call that would be made: nothing of it is left out but secrets. */
export function CallView({ call }: { call: ApiCall }) {
  const effect = text.effects[call.method] ?? text.otherEffect;
  return (
    <div className="stack">
      <Section level={3} title={text.call}>
        <p>
          {effect} {text.notMade}
        </p>
        <p className="agent-address">
          <Badge tone={call.method === "DELETE" ? "bad" : "warn"}>
            <Word text={call.method} />
          </Badge>
          <code>
            <Word text={call.url} />
          </code>
        </p>
        <HeaderTable headers={call.headers} />
      </Section>
      <Section level={3} title={text.body}>
        {call.body === undefined ? (
          <p className="muted">{text.noBody}</p>
        ) : (
          <Words isCode text={JSON.stringify(call.body, null, 2)} linesMax={200} charsMax={20_000} />
        )}
      </Section>
      <Notes tone="plain" title={agents.notes} notes={call.notes} />
    </div>
  );
}

function HeaderTable({ headers }: { headers: ApiHeader[] }) {
  if (headers.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-scroll" aria-label={text.headers} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.header}</th>
            <th scope="col">{text.value}</th>
          </tr>
        </thead>
        <tbody>
          {headers.map((header, at) => (
            <tr key={at}>
              <td>
                <code>
                  <Word text={header.name} />
                </code>
              </td>
              <td>
                {header.isSecret ? <em>{text.secret}</em> : <Word text={header.value} />}{" "}
                {header.isAdded && <span className="small muted">({text.added})</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
