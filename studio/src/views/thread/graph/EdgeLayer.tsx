import { ViewportPortal } from "@xyflow/react";
import { memo, useMemo } from "react";

import type { GraphActivity } from "../../../pure/graph_activity.ts";
import { arrowHead, type Point, routePath } from "../../../pure/graph_route.ts";
import { timesTaken } from "./edges.ts";
import type { PlacedGraph } from "./use_layout.ts";

/** All edges, and the areas of open subgraphs, in one picture below the nodes: moving the drawing moves it as a whole. */
export const EdgeLayer = memo(function EdgeLayer(props: { placed: PlacedGraph; activity: GraphActivity }) {
  const { placed, activity } = props;
  const size = useMemo(() => sizeOf(placed), [placed]);
  const edges = placed.visible.edges.map((edge, index) => ({
    edge,
    points: placed.layout.edges[index]?.points ?? NO_POINTS,
    taken: timesTaken(edge, activity),
  }));
  // Taken edges are drawn last, on top of the others.
  edges.sort((a, b) => Number(a.taken > 0) - Number(b.taken > 0));
  return (
    <ViewportPortal>
      <svg className="graph-edges" width={size.width} height={size.height} aria-hidden="true">
        {placed.layout.nodes.map(({ id, ...place }, index) =>
          placed.visible.nodes[index]?.isOpen ? (
            <rect key={id} className="graph-frame-fill" rx="8" {...place} />
          ) : null,
        )}
        {edges.map(({ edge, points, taken }) => (
          <EdgePath key={edge.id} points={points} isConditional={edge.isConditional} isTaken={taken > 0} />
        ))}
      </svg>
    </ViewportPortal>
  );
});

const NO_POINTS: Point[] = [];

function sizeOf({ layout }: PlacedGraph): { width: number; height: number } {
  let [width, height] = [1, 1];
  for (const { points } of layout.edges) {
    for (const { x, y } of points) {
      width = Math.max(width, x + 8);
      height = Math.max(height, y + 8);
    }
  }
  return { width, height };
}

const EdgePath = memo(function EdgePath(props: {
  points: Point[];
  isConditional: boolean;
  isTaken: boolean;
}) {
  const { points, isConditional, isTaken } = props;
  return (
    <g className="graph-edge" data-taken={isTaken} data-conditional={isConditional}>
      <path className="graph-edge-line" d={routePath(points)} />
      <path className="graph-edge-head" d={arrowHead(points)} />
    </g>
  );
});
