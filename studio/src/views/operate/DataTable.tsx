import type { ReactNode } from "react";

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
  /** Names the row for screen readers. One column has it. */
  isRowName?: boolean;
}

interface DataTableProps<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** The caption is read by screen readers only. */
  hasHiddenCaption?: boolean;
}

/** A table; on a phone, each row is a card. If it is wider than the page, it alone scrolls. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rows, keyOf, hasHiddenCaption = true } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section className="table-scroll operate-table" aria-label={caption} tabIndex={0}>
      <table>
        <caption className={hasHiddenCaption ? "visually-hidden" : undefined}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={column.isNumber ? "number" : undefined}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <Cell key={column.name} column={column} row={row} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const content = <div className="operate-cell">{column.cell(row)}</div>;
  const className = column.isNumber ? "number" : undefined;
  if (column.isRowName) {
    return (
      <th scope="row" data-name={column.name} className={className}>
        {content}
      </th>
    );
  }
  return (
    <td data-name={column.name} className={className}>
      {content}
    </td>
  );
}
