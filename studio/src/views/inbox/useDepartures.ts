/** Says who answered the items that leave the list, and how many arrive. */

import { useEffect, useRef, useState } from "react";

import { queryClient } from "../../api/cache.ts";
import { interruptsQuery } from "../../api/queries.ts";
import type { InboxItem } from "../../api/types.ts";
import { departed, subjectOf } from "../../pure/inbox_order.ts";
import { inbox as text } from "../../text/inbox.ts";
import { showMessage } from "./messages.ts";
import { outgoingOf } from "./outbox.ts";
import type { Inbox } from "./useInbox.ts";

/** More items that leave at once are counted, not named. */
const NAMED_MAX = 3;

/** Returns what to read aloud about new items. */
export function useDepartures({ places, total, isLoading }: Inbox, selected: string | undefined): string {
  const before = useRef({ places, total });
  const [arrived, setArrived] = useState("");
  useEffect(() => {
    const last = before.current;
    before.current = { places, total };
    if (isLoading || last.places.size === 0) return;
    if (total > last.total) setArrived(text.arrived(total - last.total));
    const gone = departed(last.places, places, total).filter(
      (item) => item.interrupt.id !== selected && !outgoingOf(item),
    );
    void report(gone);
  }, [places, total, isLoading, selected]);
  return arrived;
}

async function report(gone: InboxItem[]): Promise<void> {
  const closed = await Promise.all(gone.slice(0, NAMED_MAX).map(closing));
  // An item that only moved to another page is still open.
  const left = closed.filter((message) => message !== undefined);
  if (gone.length > NAMED_MAX && left.length === NAMED_MAX) showMessage(text.leftMany(gone.length));
  else for (const message of left) showMessage(message);
}

async function closing(item: InboxItem): Promise<string | undefined> {
  const subject = subjectOf(item);
  try {
    const all = await queryClient.fetchQuery({
      ...interruptsQuery(item.thread_id),
      staleTime: 0,
      retry: false,
    });
    const raised = all.find(({ id }) => id === item.interrupt.id);
    if (raised?.status === "open") return undefined;
    return raised?.status === "closed"
      ? text.leftClosed(subject)
      : text.left(subject, raised?.answered_by || undefined);
  } catch {
    return text.left(subject, undefined);
  }
}
