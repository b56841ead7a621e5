import { isObject, type JsonObject, textOf } from "../../../api/json.ts";
import { agents } from "../../../text/agents.ts";
import { Section } from "../parts/Section.tsx";
import { Words } from "../parts/Words.tsx";

const text = agents.atris;
const who: Record<string, string> = { user: text.you, assistant: text.agent, system: text.system };
const lines = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** All questions of the thread with their answers, and notes on the way to the current one. */
export function Conversation({ history, notes }: { history: unknown; notes: unknown }) {
  const all = [...lines(history), ...lines(notes)];
  if (all.length === 0) return null;
  return (
    <Section title={text.conversation}>
      <ol className="agent-turns">
        {all.map((line, at) => (
          <li key={at} data-role={textOf(line, "role") === "user" ? "user" : "agent"}>
            <p className="small muted">{who[textOf(line, "role") ?? ""] ?? text.system}</p>
            <Words text={textOf(line, "content") ?? ""} />
          </li>
        ))}
      </ol>
    </Section>
  );
}
