/** Which checkpoint is selected. The address keeps it; while it moves, the address follows with a delay. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { startTransition, useCallback, useEffect, useRef, useState } from "react";

import type { Json } from "../../api/json.ts";
import { stateQuery } from "../../api/queries.ts";
import { setQuery, usePageLocation } from "../../app/location.ts";
import { weightOf } from "../../pure/json_weight.ts";
import type { Timeline } from "../../pure/timeline.ts";

/** Browsers refuse pages that change their address many times a second. */
const ADDRESS_MS = 400;
/** How long the selection rests before a state is fetched. */
const REST_MS = 120;
/** How long it rests before the states next to it are fetched, too: a drag passes most of them. */
const PREFETCH_MS = 400;
/** How often panes show another checkpoint that is known already. */
const DRAW_MS = 80;
/** States with more characters are fetched one by one, and few of them are held. */
const LARGE = 300_000;
const LARGE_STATES_MAX = 2;
const STATES_MAX = 100;

export interface Selection {
  /** `undefined` follows the newest. */
  selected: string | undefined;
  select: (checkpoint: string | undefined, isFinal: boolean) => void;
}

export function useSelection(): Selection {
  const address = usePageLocation().query.get("checkpoint") ?? undefined;
  // What moves belongs to the address it moved away from: a new address ends it.
  const [moved, setMoved] = useState<{ to: string | undefined; from: string | undefined }>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const select = useCallback(
    (checkpoint: string | undefined, isFinal: boolean) => {
      clearTimeout(timer.current);
      setMoved({ to: checkpoint, from: address });
      const commit = () => setQuery({ checkpoint });
      if (isFinal) commit();
      else timer.current = setTimeout(commit, ADDRESS_MS);
    },
    [address],
  );
  const selected = moved && moved.from === address ? moved.to : address;
  return { selected, select };
}

/** Returns the checkpoint that panes show: the selected one; one that must be fetched only when the selection rests. */
export function useShownCheckpoint(thread: string, selected: string | undefined): string | undefined {
  const [shown, setShown] = useState(selected);
  const client = useQueryClient();
  const last = useRef(0);
  useEffect(() => {
    if (shown === selected) return;
    const isKnown = client.getQueryData(stateQuery(thread, selected).queryKey) !== undefined;
    const since = performance.now() - last.current;
    // The first step away is shown at once: whoever presses an arrow does not wait.
    const wait = isKnown ? Math.max(0, DRAW_MS - since) : since > REST_MS * 3 ? 0 : REST_MS;
    const timer = setTimeout(() => {
      last.current = performance.now();
      startTransition(() => setShown(selected));
    }, wait);
    return () => clearTimeout(timer);
  }, [client, thread, shown, selected]);
  return shown;
}

/** Fetches the states next to the one that is shown, so that the next step is there at once, and forgets the oldest. */
export function usePrefetch(thread: string, timeline: Timeline | undefined, shown: string | undefined): void {
  const client = useQueryClient();
  useEffect(() => {
    const place = shown === undefined ? undefined : timeline?.places.get(shown);
    if (place === undefined || !timeline) return;
    const timer = setTimeout(() => {
      const state = client.getQueryData(stateQuery(thread, shown).queryKey);
      const isLarge = state === undefined || weightOf(state.values as Json, LARGE) > LARGE;
      forgetStates(client, thread, isLarge ? LARGE_STATES_MAX : STATES_MAX);
      if (isLarge) return;
      for (const next of [place + 1, place - 1, place + 2]) {
        const id = timeline.marks[next]?.checkpoint.checkpoint_id;
        if (id) void client.prefetchQuery(stateQuery(thread, id));
      }
    }, PREFETCH_MS);
    return () => clearTimeout(timer);
  }, [client, thread, timeline, shown]);
}

/** Removes the states that were fetched first and are not on screen, so that a long drag does not fill the memory. */
function forgetStates(client: QueryClient, thread: string, max: number): void {
  const cache = client.getQueryCache();
  const states = cache.findAll({ queryKey: ["state", thread], type: "inactive" });
  states.sort((one, other) => other.state.dataUpdatedAt - one.state.dataUpdatedAt);
  for (const old of states.slice(max)) cache.remove(old);
}
