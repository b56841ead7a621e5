/** Which item is read: the one in the address, also when it is on another page of the inbox or was just answered. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { LIVE_MS } from "../../api/cache.ts";
import { interruptsQuery } from "../../api/queries.ts";
import type { InboxItem, RaisedInterrupt } from "../../api/types.ts";
import { setQuery } from "../../app/location.ts";
import { groupOf } from "../../pure/inbox_order.ts";
import { useMedia } from "../thread/media.ts";
import { type OutgoingAnswers, useOutbox } from "./outbox.ts";
import { type FoundItem, type Inbox, useFoundItem } from "./useInbox.ts";

export interface Selection {
  found: FoundItem | undefined;
  /** The open items of its thread. */
  group: readonly InboxItem[];
  /** Whether its address names an item that is looked for, or that does not exist. */
  missing: "looking" | "gone" | undefined;
  /** What became of it, if it is not open any more. */
  closed: { raised: RaisedInterrupt | undefined } | undefined;
}

export function useSelection(id: string | undefined, inbox: Inbox): Selection {
  const { places } = inbox;
  const last = useRef<FoundItem>(undefined);
  const listed = useMemo(() => placeOf(places, id), [places, id]);
  if (listed) last.current = listed;
  const known = listed ?? (last.current?.item.interrupt.id === id ? last.current : undefined);
  const search = useFoundItem(known || inbox.isLoading ? undefined : id);
  const found = known ?? search.data ?? undefined;
  if (found) last.current = found;
  const isListed = listed !== undefined;
  const raised = useRaised(found?.item, !isListed && found !== undefined && found !== search.data);
  const group = useStable(
    useMemo(() => {
      if (!found) return [];
      const all = groupOf(places.values(), found.item.thread_id);
      return isListed ? all : [found.item];
    }, [places, found, isListed]),
  );
  const isGone = !isListed && raised.isKnown && raised.raised?.status !== "open";
  const missing = !id || found ? undefined : search.data === null ? "gone" : "looking";
  const closed = useMemo(() => (isGone ? { raised: raised.raised } : undefined), [isGone, raised.raised]);
  return { found, group, missing, closed };
}

/** Returns the list before if it has the same items: pages come and go while the question on screen stays as it is. */
function useStable<T>(list: readonly T[]): readonly T[] {
  const last = useRef(list);
  const before = last.current;
  const isSame = before.length === list.length && before.every((item, at) => item === list[at]);
  if (!isSame) last.current = list;
  return last.current;
}

function placeOf(places: ReadonlyMap<number, InboxItem>, id: string | undefined): FoundItem | undefined {
  for (const [place, item] of places) if (item.interrupt.id === id) return { item, place };
  return undefined;
}

/** Asks what became of an item that is not in the list any more. */
function useRaised(item: InboxItem | undefined, isEnabled: boolean) {
  const query = useQuery({
    ...interruptsQuery(item?.thread_id ?? ""),
    enabled: isEnabled && item !== undefined,
    refetchInterval: LIVE_MS,
  });
  const raised = query.data?.find(({ id }) => id === item?.interrupt.id);
  return { raised, isKnown: isEnabled && !query.isPending };
}

/** There is room for the list or for a question, not for both. As in the style sheet. */
const NARROW = "(max-width: 48rem)";

/** Selects the first item if none is selected, and the next one when the answer to the selected one has arrived. */
export function useAdvance(id: string | undefined, inbox: Inbox, selection: Selection): void {
  const outbox = useOutbox();
  const { places, total } = inbox;
  const { found } = selection;
  const isNarrow = useMedia(NARROW);
  useEffect(() => {
    if (id || isNarrow) return;
    const first = places.get(0);
    if (first) setQuery({ item: first.interrupt.id });
  }, [id, places, isNarrow]);
  const isListed = found !== undefined && places.get(found.place) === found.item;
  const isSent = found !== undefined && isSentBy(outbox.get(found.item.thread_id), found.item);
  useEffect(() => {
    if (!found || isListed || !isSent) return;
    setQuery({ item: openFrom(found.place, total, places, outbox)?.interrupt.id });
  }, [found, isListed, isSent, places, total, outbox]);
}

function isSentBy(entry: OutgoingAnswers | undefined, item: InboxItem): boolean {
  return entry?.phase.name === "sent" && isGiven(entry, item);
}

function isGiven(entry: OutgoingAnswers | undefined, item: InboxItem): boolean {
  return entry?.given.some((given) => given.item.interrupt.id === item.interrupt.id) ?? false;
}

/** Returns the next item without an answer, after a place or else before it. */
export function openFrom(
  place: number,
  total: number,
  places: ReadonlyMap<number, InboxItem>,
  outbox: ReadonlyMap<string, OutgoingAnswers>,
): InboxItem | undefined {
  const isOpen = (item: InboxItem | undefined) => item && !isGiven(outbox.get(item.thread_id), item);
  for (let at = place; at < total; at += 1) if (isOpen(places.get(at))) return places.get(at);
  for (let at = Math.min(place, total) - 1; at >= 0; at -= 1)
    if (isOpen(places.get(at))) return places.get(at);
  return undefined;
}
