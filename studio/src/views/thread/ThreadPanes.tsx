import * as Tabs from "@radix-ui/react-tabs";
import { useQuery } from "@tanstack/react-query";
import { type ComponentType, memo, type ReactNode, Suspense, useRef } from "react";
import { isObject } from "../../api/json.ts";
import { schemasQuery } from "../../api/queries.ts";
import type { GraphSchema } from "../../api/types.ts";
import { useDirection } from "../../app/direction.ts";
import { ErrorBoundary } from "../../app/ErrorBoundary.tsx";
import { lazyView } from "../../app/lazy_view.ts";
import { setQuery, usePageLocation } from "../../app/location.ts";
import { useRevealed } from "../../app/reveal.ts";
import { thread as text } from "../../text/thread.ts";
import { Loading } from "../../ui/Notice.tsx";
import { AgentPane, hasAgentPane } from "../agents/AgentPane.tsx";
import { ThreadInterrupts } from "../inbox/ThreadInterrupts.tsx";
import { useThreadItems } from "../inbox/useInbox.ts";
import { ComparePane } from "./ComparePane.tsx";
import { FilesPane } from "./FilesPane.tsx";
import type { PaneProps } from "./pane.ts";
import { StatePane } from "./StatePane.tsx";

type TabName = keyof typeof text.view.tabs;
const tabs = text.view.tabs;

function QuestionPane({ thread }: PaneProps) {
  return <ThreadInterrupts thread={thread.thread_id} />;
}

const PANES: Record<TabName, ComponentType<PaneProps>> = {
  question: QuestionPane,
  agent: memo(AgentPane),
  graph: lazyView(() => import("./graph/GraphPane.tsx").then((module) => ({ default: module.GraphPane }))),
  messages: lazyView(() =>
    import("./messages/MessagesPane.tsx").then((module) => ({ default: module.MessagesPane })),
  ),
  state: memo(StatePane),
  trace: lazyView(() => import("./trace/TracePane.tsx").then((module) => ({ default: module.TracePane }))),
  branches: lazyView(() =>
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
  const { data: schemas } = useQuery({ ...schemasQuery(pane.assistant), enabled: !hasAgentPane(graph) });
  const hasQuestion = useThreadItems(pane.thread.thread_id).length > 0 && isWide;
  const names = tabNames(graph, isWide, hasQuestion);
  const wanted = names.find((name) => name === query.get("tab"));
  const first = hasQuestion ? "question" : defaultTab(graph, schemas);
  const tab = wanted ?? (query.has("compare") ? "compare" : first);
  const list = useRef<HTMLDivElement>(null);
  useRevealed(list, "[data-state=active]", tab);
  return (
    <div className="thread-panes">
      {isWide && (
        <section className="thread-graph" aria-label={text.view.graph}>
          <PaneBox name="graph" pane={pane} />
        </section>
      )}
      <Tabs.Root
        className="thread-tabs"
        dir={useDirection()}
        value={tab}
        onValueChange={(next) => setQuery({ tab: next })}
        activationMode="manual"
      >
        <Tabs.List ref={list} className="thread-tab-list" aria-label={text.view.panes}>
          {names.map((name) => (
            <Tabs.Trigger key={name} value={name} className="thread-tab" data-tab={name}>
              {tabs[name]}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {names.map((name) => (
          <Tabs.Content key={name} value={name} className="thread-tab-content" tabIndex={-1}>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
            <div className="thread-tab-scroll" tabIndex={0}>
              <PaneBox name={name} pane={pane} />
            </div>
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </div>
  );
});

/** With room for a graph, an open question is a tab, so that the graph stays in sight. */
function tabNames(graph: string, isWide: boolean, hasQuestion: boolean): TabName[] {
  const all: TabName[] = ["messages", "state", "graph", "trace", "branches", "compare", "files"];
  const names = isWide ? all.filter((name) => name !== "graph") : all;
  const first: TabName[] = hasQuestion ? ["question"] : [];
  return hasAgentPane(graph) ? [...first, "agent", ...names] : [...first, ...names];
}

/** A thread of a graph without messages opens at its state. */
function defaultTab(graph: string, schemas: GraphSchema | undefined): TabName {
  if (hasAgentPane(graph)) return "agent";
  const properties = isObject(schemas?.state_schema) ? schemas.state_schema.properties : undefined;
  return isObject(properties) && !("messages" in properties) ? "state" : "messages";
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
