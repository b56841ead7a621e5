import type { ChangedSheet } from "../../../pure/change_set.ts";
import { formatCount } from "../../../pure/format.ts";
import { agents } from "../../../text/agents.ts";
import { Button } from "../../../ui/Button.tsx";
import { Word } from "../parts/Words.tsx";

const text = agents.sheet;

interface SheetTableProps {
  sheets: ChangedSheet[];
  /** Names of the sheets whose cells can be shown. */
  withCells: string[];
  shown: string | undefined;
  onShow: (sheet: string) => void;
}

/** Every sheet that changed, with its number of cells. */
export function SheetTable({ sheets, withCells, shown, onShow }: SheetTableProps) {
  if (sheets.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-scroll" aria-label={text.sheet} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.sheet}</th>
            <th scope="col">{text.change}</th>
            <th scope="col" className="number">
              {text.cellCount}
            </th>
          </tr>
        </thead>
        <tbody>
          {sheets.map(({ sheet, what, cells }) => (
            <tr key={sheet}>
              <td>
                {withCells.length > 1 && withCells.includes(sheet) ? (
                  <Button aria-pressed={sheet === shown} onClick={() => onShow(sheet)}>
                    <span className="visually-hidden">{text.showCells("")}</span>
                    <Word text={sheet} />
                  </Button>
                ) : (
                  <Word text={sheet} />
                )}
              </td>
              <td>{text.what[what] ?? what}</td>
              <td className="number">{formatCount(cells)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
