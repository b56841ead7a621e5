import { visibleText } from "../../pure/visible_text.ts";
import { inbox as text } from "../../text/inbox.ts";

/** Returns the name of an agent as people know it. */
export function agentName(graph: string): string {
  return text.agents[graph] ?? visibleText(graph.slice(0, 80));
}
