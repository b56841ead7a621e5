/** Loads the older checkpoints of a long thread, page after page, while the newest are on screen. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { olderTreeQuery, treeQuery } from "../../api/queries.ts";
import type { CheckpointTree } from "../../api/types.ts";
import { appendPage } from "../../pure/tree_pages.ts";

/** More are not loaded: they would fill the memory of a browser, and no timeline has as many pixels. */
const CHECKPOINTS_MAX = 50_000;

/** Returns whether older checkpoints are being loaded. */
export function useOlderCheckpoints(thread: string, tree: CheckpointTree | undefined): boolean {
  const client = useQueryClient();
  const hasMore = tree !== undefined && !tree.is_complete && tree.checkpoints.length < CHECKPOINTS_MAX;
  const before = hasMore ? tree.checkpoints.at(-1)?.checkpoint_id : undefined;
  const { data: page } = useQuery({
    ...olderTreeQuery(thread, before ?? ""),
    enabled: before !== undefined,
  });
  useEffect(() => {
    if (!page || before === undefined) return;
    client.setQueryData(treeQuery(thread).queryKey, (known) => known && appendPage(known, before, page));
  }, [client, thread, before, page]);
  return before !== undefined;
}
