import "./trace.css";

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { runsQuery, stateQuery, traceQuery } from "../../../api/queries.ts";
import type { TraceSpan } from "../../../api/types.ts";
import { setQuery, usePageLocation } from "../../../app/location.ts";
import {
  axisOf,
  collapsedAtFirst,
  highlightsOf,
  rowsOf,
  type SpanFilter,
  traceUntil,
  withQueueWaits,
} from "../../../pure/waterfall.ts";
import { trace as text } from "../../../text/trace.ts";
import { Failure, Loading, Notice } from "../../../ui/Notice.tsx";
import { useNow } from "../../../ui/now.ts";
import type { PaneProps } from "../pane.ts";
import { TraceBar } from "./TraceBar.tsx";
import { TraceDetails } from "./TraceDetails.tsx";
import { TraceGrid } from "./TraceGrid.tsx";

const NO_SPANS: readonly TraceSpan[] = [];

/** What a thread did, when, for how long and at what cost, up to the selected checkpoint. */
export function TracePane({ thread, checkpoint }: PaneProps) {
  const id = thread.thread_id;
  const trace = useQuery(traceQuery(id));
  const runs = useQuery(runsQuery(id));
  const state = useQuery({ ...stateQuery(id, checkpoint), enabled: checkpoint !== undefined });
  const at = checkpoint === undefined ? undefined : state.data?.created_at;
  const roots = useMemo(() => {
    const all = withQueueWaits(trace.data?.runs ?? NO_SPANS, runs.data);
    return at ? traceUntil(all, Date.parse(at)) : all;
  }, [trace.data, runs.data, at]);
  if (trace.isPending) return <Loading what={text.loading} />;
  if (trace.isError && !trace.data)
    return <Failure error={trace.error} onRetry={() => void trace.refetch()} />;
  if (roots.length === 0) {
    return (
      <Notice title={text.emptyTitle}>
        <p>{checkpoint === undefined ? text.emptyNext : text.emptyAtCheckpoint}</p>
      </Notice>
    );
  }
  return <Waterfall key={id} roots={roots} />;
}

const FILTERS = Object.keys(text.filters) as SpanFilter[];

function Waterfall({ roots }: { roots: readonly TraceSpan[] }) {
  const { query } = usePageLocation();
  const filter = FILTERS.find((name) => name === query.get("spans")) ?? "all";
  const isCompressed = query.get("waits") !== "full";
  const [chosen, setCollapsed] = useState<ReadonlySet<string>>();
  // Chosen once, or a trace that grows would close what is being read.
  const [atFirst] = useState(() => collapsedAtFirst(roots));
  const collapsed = chosen ?? atFirst;
  const rows = useMemo(() => rowsOf(roots, collapsed, filter), [roots, collapsed, filter]);
  const now = useOpenNow(roots);
  const axis = useMemo(() => axisOf(roots, now, isCompressed), [roots, now, isCompressed]);
  const highlights = useMemo(() => highlightsOf(roots), [roots]);
  const [selected, setSelected] = useState<string>();
  const selectedSpan = useMemo(() => find(roots, selected), [roots, selected]);
  const toggle = (span: string, isOpen: boolean) => {
    const after = new Set(collapsed);
    if (isOpen) after.delete(span);
    else after.add(span);
    setCollapsed(after);
  };
  return (
    <section className="trace" aria-label={text.title}>
      <TraceBar
        {...{ roots, rows, filter, isCompressed }}
        onFilter={(name) => setQuery({ spans: name === "all" ? undefined : name })}
        onCompress={(isOn) => setQuery({ waits: isOn ? undefined : "full" })}
        onCollapse={setCollapsed}
      />
      {rows.length === 0 ? (
        <Notice title={text.noneTitle}>
          <p>{text.noneNext}</p>
        </Notice>
      ) : (
        <TraceGrid {...{ rows, axis, now, highlights, selected }} onSelect={setSelected} onToggle={toggle} />
      )}
      <TraceDetails span={selectedSpan} />
    </section>
  );
}

/** Returns the time, which goes on only while something is open. */
function useOpenNow(roots: readonly TraceSpan[]): number {
  const now = useNow();
  const isOpen = roots.some(({ ended_at }) => ended_at === null);
  const last = useMemo(
    () => Math.max(0, ...roots.map(({ ended_at }) => Date.parse(ended_at ?? "") || 0)),
    [roots],
  );
  return isOpen ? now : last;
}

function find(roots: readonly TraceSpan[], id: string | undefined): TraceSpan | undefined {
  if (id === undefined) return undefined;
  const open = [...roots];
  for (let span = open.pop(); span; span = open.pop()) {
    if (span.span_id === id) return span;
    open.push(...span.spans);
  }
  return undefined;
}
