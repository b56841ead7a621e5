import { memo } from "react";
import { formatCount } from "../../../pure/format.ts";
import type { Tasks } from "../../../pure/graph_activity.ts";

/** The tasks of a fan-out, one cell for each. Its counts are next to it as text, so it is hidden from screen readers. */
export const TaskStrip = memo(function TaskStrip({ tasks }: { tasks: Tasks }) {
  return (
    <span className="graph-strip" aria-hidden="true">
      <span className="graph-cells">
        {tasks.cells.map((outcome, index) => (
          <span key={index} className="graph-cell" data-status={outcome} />
        ))}
      </span>
      <span className="graph-strip-count">{formatCount(tasks.total)}</span>
    </span>
  );
});
