import { formatCost, formatCount, formatMoney } from "../../pure/format.ts";
import { axisEnd, measureOf, type UsageMeasure, type UsageRow } from "../../pure/usage.ts";
import { operate } from "../../text/operate.ts";
import { Foreign } from "./Foreign.tsx";

const text = operate.usage;

interface ChartProps {
  rows: readonly UsageRow[];
  measure: UsageMeasure;
  total: UsageRow;
}

/** A bar for each day. Screen readers hear a summary; the table next to it has the values. */
export function DayChart({ rows, measure, total }: ChartProps) {
  const end = axisEnd(Math.max(...rows.map((row) => measureOf(row, measure))));
  const width = 1 / rows.length;
  return (
    <figure className="card operate-chart">
      <div className="operate-plot small muted">
        <span className="axis-top">{formatMeasure(end, measure)}</span>
        <span className="axis-zero">0</span>
        <svg
          viewBox="0 0 1 1"
          preserveAspectRatio="none"
          role="img"
          aria-label={summary(rows, measure, total, text.byDay(text.measures[measure]))}
        >
          {[0, 0.5, 1].map((y) => (
            <line key={y} x1="0" x2="1" y1={y} y2={y} />
          ))}
          {rows.map((row, index) => (
            <DayBar key={row.name} row={row} measure={measure} end={end} x={index * width} width={width} />
          ))}
        </svg>
        <span className="axis-days">
          <span>{rows[0]?.name}</span>
          <span>{rows.at(-1)?.name}</span>
        </span>
      </div>
    </figure>
  );
}

function DayBar(props: { row: UsageRow; measure: UsageMeasure; end: number; x: number; width: number }) {
  const { row, measure, end, x, width } = props;
  const height = measureOf(row, measure) / end;
  return (
    <rect x={x + width * 0.1} width={width * 0.8} y={1 - height} height={height}>
      <title>{`${row.name}: ${rowValue(row, measure)}`}</title>
    </rect>
  );
}

/** A bar for each agent, with its name and value as text. */
export function AgentChart({ rows, measure }: ChartProps) {
  const end = Math.max(1, ...rows.map((row) => measureOf(row, measure)));
  return (
    <ul className="card operate-agents">
      {rows.map((row) => (
        <li key={row.name}>
          <div className="row small">
            <Foreign text={row.name} max={60} />
            <span className="spacer" />
            <span>{rowValue(row, measure)}</span>
          </div>
          <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
            <rect x="0" y="0" height="1" width={measureOf(row, measure) / end} />
          </svg>
        </li>
      ))}
    </ul>
  );
}

function summary(rows: readonly UsageRow[], measure: UsageMeasure, total: UsageRow, by: string): string {
  const most = rows.reduce(
    (a, b) => (measureOf(b, measure) > measureOf(a, measure) ? b : a),
    rows[0] ?? total,
  );
  return text.chart(by, rowValue(total, measure), most.name, rowValue(most, measure));
}

/** A value of a measure, in its unit. */
function formatMeasure(value: number, measure: UsageMeasure): string {
  return measure === "cost" ? formatMoney(value) : formatCount(value);
}

function rowValue(row: UsageRow, measure: UsageMeasure): string {
  return measure === "cost" ? formatCost(row.totals) : formatCount(measureOf(row, measure));
}
