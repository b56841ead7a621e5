import { useMemo, useState } from "react";

import type { Json } from "../../../api/json.ts";
import { plainCell, type ResultTable, tableOf } from "../../../pure/agent_question.ts";
import { agents } from "../../../text/agents.ts";
import { JsonTree } from "../../../ui/JsonTree.tsx";
import { Pager } from "../parts/Pager.tsx";
import { Words } from "../parts/Words.tsx";

const text = agents.atris;
const ROWS = 50;

/** A result as a table, if it is a list, and as a tree in any case. */
export function ResultView({ name, value }: { name: string; value: Json }) {
  const table = useMemo(() => tableOf(value), [value]);
  if (!table) return <JsonTree name={name} value={value} />;
  return (
    <div className="stack">
      <Rows name={name} table={table} />
      <details>
        <summary>{text.raw}</summary>
        <JsonTree name={text.raw} value={value} />
      </details>
    </div>
  );
}

function Rows({ name, table }: { name: string; table: ResultTable }) {
  const [page, setPage] = useState(0);
  const { columns, rows } = table;
  return (
    <>
      <Pager noun={text.items} page={page} size={ROWS} all={rows.length} onPage={setPage} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="table-scroll" aria-label={name} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(page * ROWS, (page + 1) * ROWS).map((row, at) => (
              <tr key={at}>
                {columns.map((column) => (
                  <td key={column}>
                    <Words text={plainCell(row[column]) ?? "…"} charsMax={120} linesMax={3} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
