import * as Tabs from "@radix-ui/react-tabs";
import { type ComponentType, lazy, memo, type ReactNode, Suspense } from "react";

import type { Thread } from "../../api/types.ts";
import { ErrorBoundary } from "../../app/ErrorBoundary.tsx";
import { setQuery, usePageLocation } from "../../app/location.ts";
import { thread as text } from "../../text/thread.ts";
import { Loading } from "../../ui/Notice.tsx";
import { AgentPane, hasAgentPane } from "../agents/AgentPane.tsx";
import { ComparePane } from "./ComparePane.tsx";
import { FilesPane } from "./FilesPane.tsx";
import type { PaneProps } from "./pane.ts";
import { StatePane } from "./StatePane.tsx";

type TabName = keyof typeof text.view.tabs;
const tabs = text.view.tabs;

const PANES: Record<TabName, ComponentType<PaneProps>> = {
  agent: memo(AgentPane),
  graph: lazy(() => import("./graph/GraphPane.tsx").then((module) => ({ default: module.GraphPane }))),
  messages: lazy(() =>
    import("./messages/MessagesPane.tsx").then((module) => ({ default: module.MessagesPane })),
  ),
  state: memo(StatePane),
  trace: lazy(() => import("./trace/TracePane.tsx").then((module) => ({ default: module.TracePane }))),
  branches: lazy(() =>
    import("./fork/BranchesPane.tsx").then((module) => ({ default: module.BranchesPane })),
  ),
  compare: memo(ComparePane),
  files: memo(FilesPane),
};

interface ThreadPanesProps extends PaneProps {
  graph: string;
  isWide: boolean;
}

/** The panes of a thread: the graph next to the others if there is room, otherwise one of them. */
export const ThreadPanes = memo(function ThreadPanes({ graph, isWide, ...pane }: ThreadPanesProps) {
  const { query } = usePageLocation();
  const names = tabNames(graph, isWide);
  const wanted = names.find((name) => name === query.get("tab"));
  const tab = wanted ?? (query.has("compare") ? "compare" : defaultTab(pane.thread, graph));
  return (
    <div className="thread-panes">
      {isWide && (
        <section className="thread-graph" aria-label={text.view.graph}>
          <PaneBox name="graph" pane={pane} />
        </section>
      )}
      <Tabs.Root
        className="thread-tabs"
        value={tab}
        onValueChange={(next) => setQuery({ tab: next })}
        activationMode="manual"
      >
        <Tabs.List className="thread-tab-list" aria-label={text.view.panes}>
          {names.map((name) => (
            <Tabs.Trigger key={name} value={name} className="thread-tab">
              {tabs[name]}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {names.map((name) => (
          <Tabs.Content key={name} value={name} className="thread-tab-content">
            <div className="thread-tab-scroll">
              <PaneBox name={name} pane={pane} />
            </div>
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </div>
  );
});

function tabNames(graph: string, isWide: boolean): TabName[] {
  const all: TabName[] = ["messages", "state", "graph", "trace", "branches", "compare", "files"];
  const names = isWide ? all.filter((name) => name !== "graph") : all;
  return hasAgentPane(graph) ? ["agent", ...names] : names;
}

/** A thread without messages opens at its state. */
function defaultTab(thread: Thread, graph: string): TabName {
  if (hasAgentPane(graph)) return "agent";
  const { messages } = (thread.values ?? {}) as { messages?: unknown };
  return thread.values && !Array.isArray(messages) ? "state" : "messages";
}

/** A pane that fails or is being loaded does not disturb the others. */
function PaneBox({ name, pane }: { name: TabName; pane: PaneProps }): ReactNode {
  const Pane = PANES[name];
  return (
    <ErrorBoundary>
      <Suspense fallback={<Loading what={tabs[name]} />}>
        <Pane {...pane} />
      </Suspense>
    </ErrorBoundary>
  );
}
