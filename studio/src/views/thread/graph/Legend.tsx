import { graph as text } from "../../../text/graph.ts";

/** What the lines of the drawing mean. */
export function Legend() {
  const lines = [
    { name: text.legend.taken, isTaken: true, isConditional: false },
    { name: text.legend.possible, isTaken: false, isConditional: false },
    { name: text.legend.decision, isTaken: false, isConditional: true },
  ];
  return (
    <ul className="graph-legend">
      {lines.map(({ name, isTaken, isConditional }) => (
        <li key={name}>
          <svg width="28" height="8" viewBox="0 0 28 8" aria-hidden="true">
            <g className="graph-edge" data-taken={isTaken} data-conditional={isConditional}>
              <path className="graph-edge-line" d="M1 4H27" />
            </g>
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}
