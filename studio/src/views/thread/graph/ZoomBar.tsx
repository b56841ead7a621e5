import { useReactFlow } from "@xyflow/react";

import { graph as text } from "../../../text/graph.ts";

/** Buttons for the size of the drawing. */
export function ZoomBar({ fit }: { fit: { padding: number; maxZoom: number } }) {
  const flow = useReactFlow();
  const buttons = [
    { name: text.zoomIn, path: "M3 8h10M8 3v10", press: () => flow.zoomIn() },
    { name: text.zoomOut, path: "M3 8h10", press: () => flow.zoomOut() },
    { name: text.zoomAll, path: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4", press: () => flow.fitView(fit) },
  ];
  return (
    <fieldset className="graph-zoom">
      <legend className="visually-hidden">{`${text.zoom}. ${text.canvasKeys}`}</legend>
      {buttons.map(({ name, path, press }) => (
        <button
          key={name}
          type="button"
          className="button"
          aria-label={name}
          title={name}
          onClick={() => void press()}
        >
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <path d={path} fill="none" stroke="currentColor" strokeWidth="1.8" />
          </svg>
        </button>
      ))}
    </fieldset>
  );
}
