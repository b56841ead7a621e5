/**
 * A chat and two versions of an assistant, for the views that need graphs which the program's own agents are not: on servers with
 * those of `testing/server-suites`.
 */

import type { Assistant, Thread } from "../src/api/types.ts";
import { pause } from "./lab.ts";
import { SuitesServer } from "./suites_server.ts";

export interface OtherGraphs {
  chats: SuitesServer;
  versions: SuitesServer;
  /** A conversation with an answer, and one in which the assistant waits for an approval. */
  answered: string;
  asking: string;
  /** An assistant with two versions, whose results differ. */
  assistant: string;
}

/** Starts the servers, and the runs without waiting for their ends: see `settleOtherGraphs`. */
export async function startOtherGraphs(): Promise<OtherGraphs> {
  const chats = await SuitesServer.start("apps");
  let versions: SuitesServer | undefined;
  try {
    const answered = await sayTo(chats, "slow_chat", "I cannot sleep");
    const asking = await sayTo(chats, "refunds", "I want my money back for A-17, please");
    versions = await SuitesServer.start("javascript");
    const assistant = await twoVersions(versions);
    return { chats, versions, answered, asking, assistant };
  } catch (error) {
    chats.stop();
    versions?.stop();
    throw error;
  }
}

/** Waits until the conversations are where they are looked at. */
export async function settleOtherGraphs({ chats, answered, asking }: OtherGraphs): Promise<void> {
  await reaches(chats, answered, "idle");
  await reaches(chats, asking, "interrupted");
}

export function stopOtherGraphs(others: OtherGraphs | undefined): void {
  others?.chats.stop();
  others?.versions.stop();
}

async function sayTo(server: SuitesServer, graph: string, content: string): Promise<string> {
  const { thread_id } = await server.call<Thread>("POST", "/threads", {});
  const input = { messages: [{ type: "human", content }] };
  await server.call("POST", `/threads/${thread_id}/runs`, { assistant_id: graph, input });
  return thread_id;
}

async function reaches(server: SuitesServer, thread: string, status: Thread["status"]): Promise<void> {
  let found: Thread | undefined;
  for (let attempt = 0; attempt < 600; attempt++) {
    found = await server.call<Thread>("GET", `/threads/${thread}`);
    // A thread is idle also before its first run.
    if (found.status === status && found.values) return;
    await pause(50);
  }
  throw new Error(`the chat is ${found?.status}, not ${status}`);
}

async function twoVersions(server: SuitesServer): Promise<string> {
  const model = (name: string) => ({ context: { model: name } });
  const { assistant_id } = await server.call<Assistant>("POST", "/assistants", {
    graph_id: "simple_runtime",
    name: "Model chooser",
    ...model("openai"),
  });
  await server.call("PATCH", `/assistants/${assistant_id}`, model("anthropic"));
  return assistant_id;
}
