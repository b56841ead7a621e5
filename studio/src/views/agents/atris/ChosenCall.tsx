import { isObject, type Json, type JsonObject, textOf } from "../../../api/json.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Section } from "../parts/Section.tsx";
import { Word } from "../parts/Words.tsx";

const text = agents.atris;
const objects = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The call that answers the question, and those that it was chosen from. */
export function ChosenCall({ values }: { values: JsonObject }) {
  const api = isObject(values.bestApi) ? values.bestApi : undefined;
  const candidates = objects(values.apis);
  const host = textOf(values, "selectedHost");
  return (
    <Section title={text.chosen}>
      {api ? <CallCard api={api} host={host} /> : <p className="muted">{text.notChosen}</p>}
      {api && <ParameterTable api={api} values={isObject(values.parameters) ? values.parameters : {}} />}
      {candidates.length > 1 && (
        <details>
          <summary>{text.candidates(candidates.length)}</summary>
          <ul className="agent-list">
            {candidates.map((each, at) => (
              <li key={at}>
                <CallCard api={each} host={undefined} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </Section>
  );
}

function CallCard({ api, host }: { api: JsonObject; host: string | undefined }) {
  return (
    <div>
      <p className="agent-address">
        <Badge tone="accent">{textOf(api, "method") ?? ""}</Badge>
        <code>
          <Word text={`${host ?? ""}${textOf(api, "api_url") ?? ""}`} />
        </code>
      </p>
      <p className="small muted">
        <Word text={textOf(api, "api_description") || textOf(api, "tool_name") || ""} />
      </p>
    </div>
  );
}

function ParameterTable({ api, values }: { api: JsonObject; values: JsonObject }) {
  const required = objects(api.required_parameters);
  const known = [...required, ...objects(api.optional_parameters)];
  const names = new Set([...known.map((each) => textOf(each, "name") ?? ""), ...Object.keys(values)]);
  if (names.size === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-scroll" aria-label={text.parameters} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.parameter}</th>
            <th scope="col">{text.value}</th>
            <th scope="col">{text.meaning}</th>
          </tr>
        </thead>
        <tbody>
          {[...names].map((name) => {
            const of = (each: JsonObject) => textOf(each, "name") === name;
            const isRequired = required.some(of);
            return (
              <tr key={name}>
                <td>
                  <code>
                    <Word text={name} />
                  </code>{" "}
                  {isRequired && <Badge>{text.required}</Badge>}
                </td>
                <td>
                  <ParameterValue value={values[name] ?? null} isRequired={isRequired} />
                </td>
                <td>
                  <Word text={textOf(known.find(of), "description") ?? ""} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function ParameterValue({ value, isRequired }: { value: Json; isRequired: boolean }) {
  if (value === null) return <em className="muted">{isRequired ? text.notKnown : text.notSent}</em>;
  return <Word text={typeof value === "string" ? value : JSON.stringify(value)} />;
}
