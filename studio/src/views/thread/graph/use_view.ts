/** What a visitor chose to see of the graph. It is in the address, so that it can be shared. */

import { useCallback, useMemo } from "react";

import { setQuery, usePageLocation } from "../../../app/location.ts";
import { type GraphModel, groupsOf } from "../../../pure/graph_model.ts";

/** Graphs up to this size are shown with all subgraphs open. */
const OPEN_UP_TO = 24;
/** On a phone, a list is easier to read than a drawing. */
const NARROW = "(max-width: 40rem)";

export interface GraphView {
  isOutline: boolean;
  setOutline: (isOutline: boolean) => void;
  open: ReadonlySet<string>;
  setOpen: (open: Iterable<string>) => void;
  toggle: (group: string) => void;
  selected: string | undefined;
  select: (node: string | undefined) => void;
}

export function useGraphView(model: GraphModel | undefined): GraphView {
  const { query } = usePageLocation();
  const view = query.get("graph_view");
  const isOutline = view === null ? matchMedia(NARROW).matches : view === "outline";
  const openText = query.get("graph_open");
  const open = useMemo(() => openGroups(model, openText), [model, openText]);
  const setOpen = useCallback(
    (groups: Iterable<string>) => setQuery({ graph_open: JSON.stringify([...groups]) }),
    [],
  );
  const toggle = useCallback(
    (group: string) => {
      const next = new Set(open);
      if (!next.delete(group)) next.add(group);
      setOpen(next);
    },
    [open, setOpen],
  );
  const select = useCallback((node: string | undefined) => setQuery({ graph_node: node }), []);
  const setOutline = useCallback(
    (next: boolean) => setQuery({ graph_view: next ? "outline" : "drawing" }),
    [],
  );
  const selected = query.get("graph_node") ?? undefined;
  return { isOutline, setOutline, open, setOpen, toggle, selected, select };
}

function openGroups(model: GraphModel | undefined, text: string | null): Set<string> {
  if (text !== null) {
    try {
      const parsed: unknown = JSON.parse(text);
      if (Array.isArray(parsed)) return new Set(parsed.filter((id) => typeof id === "string"));
    } catch {
      // An address that somebody changed: as if it said nothing.
    }
  }
  return new Set(model && model.nodes.size <= OPEN_UP_TO ? groupsOf(model) : []);
}
