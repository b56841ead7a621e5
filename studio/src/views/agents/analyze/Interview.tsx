import type { Turn } from "../../../pure/citations.ts";
import { agents } from "../../../text/agents.ts";
import { Words } from "../parts/Words.tsx";

const text = agents.analyze;

/** The interview, the oldest turn first. */
export function Interview({ turns }: { turns: Turn[] }) {
  return (
    <ol className="agent-turns">
      {turns.map((turn, at) => (
        <li key={at} data-role={turn.role}>
          <p className="small muted">{turn.role === "user" ? text.you : text.agent}</p>
          <Words text={turn.text} />
        </li>
      ))}
    </ol>
  );
}
