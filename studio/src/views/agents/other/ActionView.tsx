import { isObject, type Json } from "../../../api/json.ts";
import type { ActionQuestion } from "../../../pure/agent_question.ts";
import { agents } from "../../../text/agents.ts";
import { JsonTree } from "../../../ui/JsonTree.tsx";
import { Facts } from "../parts/Facts.tsx";
import { Section } from "../parts/Section.tsx";
import { Word, Words } from "../parts/Words.tsx";

const text = agents.other;

/** An action of any agent: its name, its arguments, and what is said about it. */
export function ActionView({ action, args, description, choices }: ActionQuestion) {
  return (
    <div className="stack">
      {description && <Words text={description} />}
      <Section level={3} title={text.action(action)}>
        <Arguments args={args} />
      </Section>
      {choices.length > 0 && (
        <Section level={3} title={text.answers}>
          <Facts facts={choices.map(({ type, means }) => [type, <Word key={type} text={means} />])} />
        </Section>
      )}
    </div>
  );
}

function Arguments({ args }: { args: Json }) {
  if (!isObject(args)) return <JsonTree name={text.argument} value={args} />;
  const fields = Object.entries(args);
  if (fields.length === 0) return <p className="muted">{text.noArguments}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-scroll" aria-label={text.argument} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.argument}</th>
            <th scope="col">{text.value}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(([name, value]) => (
            <tr key={name}>
              <td>
                <code>
                  <Word text={name} />
                </code>
              </td>
              <td>
                <ArgumentValue name={name} value={value} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ArgumentValue({ name, value }: { name: string; value: Json }) {
  if (typeof value === "string") return <Words text={value} />;
  if (value !== null && typeof value === "object") return <JsonTree name={name} value={value} />;
  return <code>{String(value)}</code>;
}
