import type { InboxItem } from "../../api/types.ts";

/** What is asked, as the thing itself: a mail as a mail, a change set as a grid. Other graphs: the value as text. */
export function AgentQuestion(_: { item: InboxItem }) {
  return null;
}
