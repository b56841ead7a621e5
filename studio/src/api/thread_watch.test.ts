import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";

import { watchThreads } from "./thread_watch.ts";
import type { Thread } from "./types.ts";

/** A thread on screen, with its tree and the states of the newest and of another checkpoint. */
function screen() {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const clock = { now: 0 };
  const calls: Record<string, number> = { tree: 0, state: 0, checkpoint: 0 };
  const row = { status: "idle", updated_at: "2020-01-01T00:00:00Z" } as Thread;
  let treeMs = 0;
  watchThreads(client, () => clock.now);
  const show = (queryKey: unknown[], queryFn: () => unknown) =>
    new QueryObserver(client, { queryKey, queryFn }).subscribe(() => {});
  const count = (name: string) => () => {
    calls[name] = (calls[name] ?? 0) + 1;
    if (name === "tree") clock.now += treeMs;
    return calls[name];
  };
  show(["tree", "t"], count("tree"));
  show(["state", "t", "newest"], count("state"));
  show(["state", "t", "c1"], count("checkpoint"));
  const poll = async (after = 500) => {
    clock.now += after;
    await client.fetchQuery({ queryKey: ["thread", "t"], queryFn: () => ({ ...row }), staleTime: 0 });
    await vi.waitFor(() => expect(client.isFetching()).toBe(0));
  };
  const slowTree = (ms: number) => {
    treeMs = ms;
  };
  return { calls, row, poll, slowTree, client };
}

test("a thread that rests is read once, however often its row is", async () => {
  const { calls, poll } = screen();
  for (let count = 0; count < 20; count += 1) await poll();
  expect(calls).toEqual({ tree: 1, state: 1, checkpoint: 1 });
});

test("a change is followed by a request at once, and by a last one", async () => {
  const { calls, row, poll } = screen();
  await poll();
  row.updated_at = "2020-01-01T00:00:01Z";
  await poll();
  expect(calls.tree).toBe(2);
  for (let count = 0; count < 20; count += 1) await poll();
  const settled = calls.tree;
  for (let count = 0; count < 20; count += 1) await poll();
  expect(calls.tree).toBe(settled);
  expect(calls.checkpoint).toBe(1);
});

test("while a run is active, what takes long is asked for less often", async () => {
  const { calls, row, poll, slowTree } = screen();
  row.status = "busy";
  slowTree(1000);
  await poll();
  for (let count = 0; count < 40; count += 1) await poll();
  expect(calls.state).toBeGreaterThan(30);
  expect(calls.tree).toBeLessThanOrEqual(5);
  // And once more when it has ended, because the last one may be from before.
  const before = calls.tree ?? 0;
  row.status = "idle";
  await poll();
  expect(calls.tree).toBe(before + 1);
});

test("after an outage, everything is asked for again", async () => {
  const { calls, poll, client } = screen();
  await poll();
  const fails = () => Promise.reject(new Error("away"));
  await client.fetchQuery({ queryKey: ["thread", "t"], queryFn: fails, staleTime: 0 }).catch(() => {});
  await poll();
  expect(calls.tree).toBe(2);
});
