import type { PaneProps } from "../thread/pane.ts";

/** Whether threads of a graph have a view of their own. */
export function hasAgentPane(_graph: string): boolean {
  return false;
}

/** The view of one of the five agents; nothing for other graphs. */
export function AgentPane(_: PaneProps) {
  return null;
}
