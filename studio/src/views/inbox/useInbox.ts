/** The inbox page by page: only the pages that are on screen are asked for again. */

import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";

import { requestPage } from "../../api/client.ts";
import { inboxQuery, threadQuery } from "../../api/queries.ts";
import type { InboxItem } from "../../api/types.ts";
import { type InboxPage, placed } from "../../pure/inbox_order.ts";

export const PAGE = 100;

export interface Inbox {
  total: number;
  /** The items of the loaded pages, by their place in the list. */
  places: ReadonlyMap<number, InboxItem>;
  isLoading: boolean;
  error: unknown;
  retry: () => void;
}

export function useInbox(offsets: readonly number[]): Inbox {
  const results = useQueries({
    queries: offsets.map((offset) => inboxQuery({ limit: PAGE, offset })),
  });
  const pages = results.map((result, at): InboxPage | undefined =>
    result.data && !result.isPlaceholderData
      ? { offset: offsets[at] ?? 0, items: result.data.items }
      : undefined,
  );
  const totals = results.map((result) => result.data?.total);
  const total = totals.find((each) => each !== undefined) ?? pages[0]?.items.length ?? 0;
  return {
    total,
    places: usePlaces(pages.filter((page) => page !== undefined)),
    isLoading: results.every((result) => result.data === undefined && result.error === null),
    error: results.every((result) => result.data === undefined)
      ? results.find(({ error }) => error)?.error
      : undefined,
    retry: () => {
      for (const result of results) void result.refetch();
    },
  };
}

/** An item gets older with every response. It is another one only if anything else of it changed. */
function usePlaces(pages: readonly InboxPage[]): ReadonlyMap<number, InboxItem> {
  const last = useRef<{ pages: readonly InboxPage[]; places: ReadonlyMap<number, InboxItem> }>(undefined);
  const known = last.current;
  const isKnown =
    known?.pages.length === pages.length &&
    pages.every(
      (page, at) => page.offset === known.pages[at]?.offset && page.items === known.pages[at]?.items,
    );
  if (known && isKnown) return known.places;
  const before = new Map([...(known?.places.values() ?? [])].map((item) => [item.interrupt.id, item]));
  const places = new Map<number, InboxItem>();
  for (const [place, item] of placed(pages)) {
    const same = before.get(item.interrupt.id);
    places.set(place, same && isUnchanged(same, item) ? same : item);
  }
  const isSame =
    known?.places.size === places.size && [...places].every(([at, item]) => known.places.get(at) === item);
  last.current = { pages, places: known && isSame ? known.places : places };
  return last.current.places;
}

function isUnchanged(one: InboxItem, other: InboxItem): boolean {
  const names = Object.keys(other) as (keyof InboxItem)[];
  return names.every((name) => name === "age_ms" || one[name] === other[name]);
}

export interface FoundItem {
  item: InboxItem;
  place: number;
}

/** Looks for an item on all pages: an address may name one that is far down. */
export function useFoundItem(interrupt: string | undefined) {
  return useQuery({
    queryKey: ["inbox-item", interrupt],
    queryFn: async ({ signal }): Promise<FoundItem | null> => {
      for (let offset: number | undefined = 0; offset !== undefined; ) {
        const query = { limit: PAGE, offset };
        const page: { items: InboxItem[]; next: number | undefined } = await requestPage<InboxItem>(
          "/superstep/inbox",
          {
            query,
            signal,
          },
        );
        const at = page.items.findIndex((item) => item.interrupt.id === interrupt);
        const item = page.items[at];
        if (item) return { item, place: offset + at };
        offset = page.next;
      }
      return null;
    },
    enabled: interrupt !== undefined,
    staleTime: 5000,
  });
}

/** Returns the open items of one thread. */
export function useThreadItems(thread: string): InboxItem[] {
  const { data } = useQuery(threadQuery(thread));
  const open = data?.interrupts as Record<string, { id: string }[]> | undefined;
  const ids = Object.values(open ?? {})
    .flat()
    .map(({ id }) => id)
    .sort()
    .join();
  const items = useQuery({
    queryKey: ["inbox", "thread", thread, ids],
    queryFn: ({ signal }) => itemsOf(thread, ids.split(","), signal),
    enabled: ids !== "",
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });
  return useMemo(() => {
    const isOpen = new Set(ids.split(","));
    return (items.data ?? []).filter((item) => item.thread_id === thread && isOpen.has(item.interrupt.id));
  }, [items.data, ids, thread]);
}

async function itemsOf(thread: string, ids: string[], signal: AbortSignal): Promise<InboxItem[]> {
  const found: InboxItem[] = [];
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const query = { thread_id: thread, limit: PAGE, offset };
    const page: { items: InboxItem[]; next: number | undefined } = await requestPage<InboxItem>(
      "/superstep/inbox",
      {
        query,
        signal,
      },
    );
    found.push(...page.items.filter((item) => item.thread_id === thread));
    if (ids.every((id) => found.some((item) => item.interrupt.id === id))) break;
    offset = page.next;
  }
  return found;
}
