/** What a page of the audit log shows, and whether its entries are linked. */

import type { AuditEntry } from "./api.ts";

export type AuditKind = "request" | "outcome" | "answer" | "tool" | "other";

export function kindOf(entry: Pick<AuditEntry, "action">): AuditKind {
  if (entry.action === "outcome") return "outcome";
  if (entry.action === "interrupt.answer") return "answer";
  if (entry.action === "tool.call") return "tool";
  return /^[A-Z]+ \//.test(entry.action) ? "request" : "other";
}

/** Whether an entry contains a text anywhere, in whatever case. */
export function containsText(entry: AuditEntry, wanted: string): boolean {
  const { seq, at, principal, action, resource, detail } = entry;
  const all = [seq, at, principal, action, resource, JSON.stringify(detail)].join("\n").toLowerCase();
  return all.includes(wanted.toLowerCase());
}

/** Returns the first entry that does not follow the one before it; `undefined` if all do. The entries are in their order. */
export function firstBroken(entries: readonly AuditEntry[]): AuditEntry | undefined {
  return entries.find((entry, index) => {
    const before = entries[index - 1];
    return before !== undefined && (entry.previous !== before.hash || entry.seq !== before.seq + 1);
  });
}
