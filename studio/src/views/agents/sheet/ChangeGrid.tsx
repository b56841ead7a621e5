import { useState } from "react";

import { columnLetters, type Grid } from "../../../pure/change_set.ts";
import { agents } from "../../../text/agents.ts";
import { Notes } from "../parts/Notes.tsx";
import { Pager } from "../parts/Pager.tsx";
import { ChangedCell } from "./ChangedCell.tsx";

const text = agents.sheet;
const ROWS = 50;
const COLUMNS = 12;

/** The changed cells of a sheet as a grid, page by page. Rows and columns without a change are left out. */
export function ChangeGrid({ sheet, grid }: { sheet: string; grid: Grid }) {
  const [rowPage, setRowPage] = useState(0);
  const [columnPage, setColumnPage] = useState(0);
  const [isCodeShown, setCodeShown] = useState(false);
  const rows = grid.rows.slice(rowPage * ROWS, (rowPage + 1) * ROWS);
  const columns = grid.columns.slice(columnPage * COLUMNS, (columnPage + 1) * COLUMNS);
  return (
    <div className="stack">
      <div className="row">
        <Pager noun={text.rows} page={rowPage} size={ROWS} all={grid.rows.length} onPage={setRowPage} />
        <Pager
          noun={text.columns}
          page={columnPage}
          size={COLUMNS}
          all={grid.columns.length}
          onPage={setColumnPage}
        />
        <label className="row small">
          <input type="checkbox" checked={isCodeShown} onChange={() => setCodeShown(!isCodeShown)} />
          {text.showCode}
        </label>
      </div>
      <GridTable sheet={sheet} grid={grid} rows={rows} columns={columns} isCodeShown={isCodeShown} />
      <Notes tone="plain" title={text.unread} notes={grid.unread} />
    </div>
  );
}

interface GridTableProps {
  sheet: string;
  grid: Grid;
  rows: number[];
  columns: number[];
  isCodeShown: boolean;
}

function GridTable({ sheet, grid, rows, columns, isCodeShown }: GridTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-scroll agent-grid" aria-label={text.grid(sheet)} tabIndex={0}>
      <table>
        <caption className="visually-hidden">{text.grid(sheet)}</caption>
        <thead>
          <tr>
            <th scope="col">{text.row}</th>
            {columns.map((column) => (
              <th key={column} scope="col">
                {columnLetters(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row}>
              <th scope="row">{row}</th>
              {columns.map((column) => (
                <ChangedCell
                  key={column}
                  change={grid.cells.get(row)?.get(column)}
                  isCodeShown={isCodeShown}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
