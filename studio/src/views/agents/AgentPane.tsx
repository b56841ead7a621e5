import "./agents.css";

import { useQuery } from "@tanstack/react-query";
import type { ComponentType } from "react";

import { stateQuery } from "../../api/queries.ts";
import type { ThreadState } from "../../api/types.ts";
import { agents } from "../../text/agents.ts";
import { Failure, Loading } from "../../ui/Notice.tsx";
import { assistantOf, type PaneProps } from "../thread/pane.ts";
import { AnalyzePane } from "./analyze/AnalyzePane.tsx";
import { AtrisPane } from "./atris/AtrisPane.tsx";
import { DocsPane } from "./docs/DocsPane.tsx";
import { MailPane } from "./mail/MailPane.tsx";
import { SheetPane } from "./sheet/SheetPane.tsx";

const PANES = new Map<string, ComponentType<{ thread: string; state: ThreadState }>>([
  ["analyze", AnalyzePane],
  ["sheet", SheetPane],
  ["docs", DocsPane],
  ["atris", AtrisPane],
  ["email_assistant", MailPane],
]);

/** Whether threads of a graph have a view of their own. */
export function hasAgentPane(graph: string): boolean {
  return PANES.has(graph);
}

/** The view of one of the five agents; nothing for other graphs. */
export function AgentPane({ thread, checkpoint }: PaneProps) {
  const state = useQuery(stateQuery(thread.thread_id, checkpoint));
  const Pane = PANES.get(assistantOf(thread)?.graph ?? "");
  if (!Pane) return null;
  if (state.data) {
    return (
      <div className="agent-pane">
        <Pane thread={thread.thread_id} state={state.data} />
      </div>
    );
  }
  if (state.error) return <Failure error={state.error} onRetry={() => void state.refetch()} />;
  return <Loading what={agents.loadingState} />;
}
