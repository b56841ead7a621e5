/** The types of the API under short names. They are generated from the server's OpenAPI document: `npm run types`. */

import type { components } from "./schema.ts";

type Schemas = components["schemas"];

export type Assistant = Schemas["Assistant"];
export type AssistantVersion = Schemas["AssistantVersion"];
export type Budget = Schemas["Budget"];
export type CallTotals = Schemas["CallTotals"];
export type CheckpointTree = Schemas["CheckpointTree"];
export type TreeCheckpoint = CheckpointTree["checkpoints"][number];
export type Cron = Schemas["Cron"];
export type Delivery = Schemas["Delivery"];
export type DeclaredGraph = Schemas["Graph"];
export type ForkPreview = Schemas["ForkPreview"];
export type GraphSchema = Schemas["GraphSchema"];
export type InboxItem = Schemas["InboxItem"];
export type Interrupt = Schemas["Interrupt"];
export type QueuedRun = Schemas["QueuedRun"];
export type Run = Schemas["Run"];
export type RunQueue = Schemas["RunQueue"];
export type StateDiff = Schemas["StateDiff"];
export type StateLabels = Schemas["StateLabels"];
export type StoreItem = Schemas["Item"];
export type TestCase = Schemas["TestCase"];
export type Thread = Schemas["Thread"];
export type ThreadFile = Schemas["ThreadFile"];
export type ThreadState = Schemas["ThreadState"];
export type ThreadTrace = Schemas["ThreadTrace"];
export type TraceSpan = Schemas["TraceSpan"];

/** What the caller of the page may do. */
export type Permission = "read" | "run" | "answer" | "edit" | "admin";

/** Who the caller is: `GET /superstep/me`. */
export interface Me {
  principal: string;
  tenant: string;
  permissions: Permission[];
  /** Whether the server asks its callers who they are. */
  is_authenticated: boolean;
}

/** An interrupt of a thread, answered or not: `GET /superstep/threads/{thread_id}/interrupts`. */
export interface RaisedInterrupt {
  id: string;
  node: string;
  kind: string;
  asked_at: string;
  value: unknown;
  status: "open" | "answered" | "closed";
  answer: unknown;
  answered_by: string | null;
  answered_at: string | null;
}
