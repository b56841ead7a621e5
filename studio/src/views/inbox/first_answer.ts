/** The answer that the server took, when another one came too late. */

import type { RaisedInterrupt } from "../../api/types.ts";
import { clockTime } from "../../pure/format.ts";
import { inbox as text } from "../../text/inbox.ts";

/** `answer` is not there while only the refusal is known. */
export type FirstAnswer = Pick<RaisedInterrupt, "status" | "answered_by" | "answered_at"> & {
  answer?: unknown;
};

/** Says who was first, and when. */
export function firstText(first: FirstAnswer | undefined): string {
  if (first?.status === "closed") return text.closed;
  const at = first?.answered_at ? clockTime(Date.parse(first.answered_at), Date.now()) : undefined;
  return text.first(first?.answered_by || undefined, at);
}
