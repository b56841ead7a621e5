/** What is known about the messages of a thread besides their text. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { interruptsQuery, labelsQuery, traceQuery } from "../../../api/queries.ts";
import {
  type Approval,
  approvalsOf,
  type CallFacts,
  callFactsOf,
  type ModelFacts,
  messageLabels,
  modelFactsOf,
  type ThreadMessage,
} from "../../../pure/messages.ts";

export interface Facts {
  /** By the id of the call. */
  calls: ReadonlyMap<string, CallFacts>;
  approvals: ReadonlyMap<string, Approval>;
  /** By the key of the message. */
  models: ReadonlyMap<string, ModelFacts>;
  /** By the pointer of the message. */
  labels: ReadonlyMap<string, readonly string[]>;
}

/** Returns what the trace, the interrupts and the labels say, as it was at the time of a checkpoint. */
export function useFacts(
  thread: string,
  checkpoint: string | undefined,
  until: number | undefined,
  messages: readonly ThreadMessage[],
): Facts {
  const { data: trace } = useQuery(traceQuery(thread));
  const { data: interrupts } = useQuery(interruptsQuery(thread));
  const { data: labels } = useQuery(labelsQuery(thread, checkpoint));
  const calls = useMemo(() => callFactsOf(trace, until), [trace, until]);
  const approvals = useMemo(() => approvalsOf(interrupts, until), [interrupts, until]);
  const models = useMemo(() => modelFactsOf(messages, trace, until), [messages, trace, until]);
  const marks = useMemo(() => messageLabels(labels), [labels]);
  return useMemo(() => ({ calls, approvals, models, labels: marks }), [calls, approvals, models, marks]);
}
