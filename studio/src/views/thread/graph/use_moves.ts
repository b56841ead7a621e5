import { useReactFlow } from "@xyflow/react";
import { type KeyboardEvent, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "react";

import { type GraphActivity, STATUSES } from "../../../pure/graph_activity.ts";
import type { PlacedNode } from "../../../pure/graph_layout.ts";
import type { NodeActions } from "./flow_nodes.ts";
import type { PlacedGraph } from "./use_layout.ts";
import type { GraphView } from "./use_view.ts";

export const FIT = { padding: 0.06, maxZoom: 1 };
/** Smaller than this, names cannot be read: then the drawing begins with a part of the graph. */
const READABLE = 0.55;
const PART = 0.8;

const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [60, 0],
  ArrowRight: [-60, 0],
  ArrowUp: [0, 60],
  ArrowDown: [0, -60],
};

type Flow = ReturnType<typeof useReactFlow>;

/** Moves the drawing: by keys, to what has the focus, and so that a subgraph stays in place when it is opened. */
export function useMoves(view: GraphView, placed: PlacedGraph, activity: GraphActivity) {
  const flow = useReactFlow();
  const ref = useRef<HTMLDivElement>(null);
  const places = useRef(placed);
  const { actions, anchor } = useActions(flow, view, places, ref);
  const { show, onMoveStart } = useFirstView(flow, places, activity, ref);

  useLayoutEffect(() => {
    const isOther = places.current !== placed;
    places.current = placed;
    const before = anchor.current;
    anchor.current = undefined;
    const now = before && placed.layout.nodes.find(({ id }) => id === before.id);
    if (!before || !now) {
      // All subgraphs were opened or closed: nothing is where it was.
      if (isOther) requestAnimationFrame(show);
      return;
    }
    const { x, y, zoom } = flow.getViewport();
    void flow.setViewport({ x: x + (before.x - now.x) * zoom, y: y + (before.y - now.y) * zoom, zoom });
    // The button that was pressed is another one now.
    const toggles = [...(ref.current?.querySelectorAll<HTMLElement>("[data-toggle]") ?? [])];
    toggles.find(({ dataset }) => dataset.toggle === before.id)?.focus({ preventScroll: true });
  }, [placed, flow, anchor, show]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const { x, y, zoom } = flow.getViewport();
      void flow.setViewport({ x: x + arrow[0], y: y + arrow[1], zoom });
    } else if (event.key === "+") void flow.zoomIn();
    else if (event.key === "-") void flow.zoomOut();
    else if (event.key === "0") void flow.fitView(FIT);
    else return;
    onMoveStart(event.nativeEvent);
    event.preventDefault();
  };
  return { actions, onKeyDown, onInit: show, onMoveStart, ref };
}

type Places = { current: PlacedGraph };
type Around = { current: HTMLDivElement | null };

function useActions(flow: Flow, view: GraphView, places: Places, ref: Around) {
  const anchor = useRef<PlacedNode>(undefined);
  const latest = useRef(view);
  latest.current = view;
  const actions = useMemo<NodeActions>(() => {
    const placeOf = (id: string) => places.current.layout.nodes.find((node) => node.id === id);
    return {
      select: (node) => latest.current.select(node),
      toggle: (group) => {
        anchor.current = placeOf(group);
        latest.current.toggle(group);
      },
      reveal: (id, element) => {
        const place = placeOf(id);
        if (!place || isInside(element, ref.current)) return;
        const y = place.y + Math.min(place.height, 120) / 2;
        void flow.setCenter(place.x + place.width / 2, y, { zoom: flow.getZoom() });
      },
    };
  }, [flow, places, ref]);
  return { actions, anchor };
}

/** Shows all of the graph or, if it is too large to read, what is most urgent in it. Again when the pane has another size. */
function useFirstView(flow: Flow, places: Places, activity: GraphActivity, ref: Around) {
  const hasMoved = useRef(false);
  const latest = useRef(activity);
  latest.current = activity;
  const show = useCallback(() => {
    const box = ref.current?.querySelector(".react-flow")?.getBoundingClientRect();
    const { nodes } = places.current.layout;
    if (!box || box.width === 0 || nodes.length === 0) return;
    const width = Math.max(...nodes.map((node) => node.x + node.width));
    const height = Math.max(...nodes.map((node) => node.y + node.height));
    if (Math.min(box.width / width, box.height / height) >= READABLE) return void flow.fitView(FIT);
    const urgent = mostUrgent(places.current, latest.current);
    const x = box.width / 2 - PART * (urgent ? urgent.x + urgent.width / 2 : (nodes[0]?.x ?? 0) + 32);
    const y = urgent ? box.height / 2 - PART * (urgent.y + urgent.height / 2) : 24;
    void flow.setViewport({ x, y, zoom: PART });
  }, [flow, places, ref]);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (!hasMoved.current) show();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [show, ref]);
  // Without an event, it was the page that moved the drawing.
  const onMoveStart = useCallback((event: unknown) => {
    if (event) hasMoved.current = true;
  }, []);
  return { show, onMoveStart };
}

/** Returns the place of the node that waits, failed or runs; `undefined` if none does. */
function mostUrgent({ visible, layout }: PlacedGraph, activity: GraphActivity): PlacedNode | undefined {
  const closed = layout.nodes.filter((_, index) => !visible.nodes[index]?.isOpen);
  for (const status of STATUSES.slice(0, 3)) {
    const found = closed.find(({ id }) => activity.nodes.get(id)?.status === status);
    if (found) return found;
  }
  return undefined;
}

function isInside(element: Element, around: Element | null): boolean {
  if (!around) return true;
  const [a, b] = [element.getBoundingClientRect(), around.getBoundingClientRect()];
  return a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
}
