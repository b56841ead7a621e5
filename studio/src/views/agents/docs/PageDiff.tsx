import { useMemo, useState } from "react";

import { type DiffBlock, type DiffRow, diffPages, foldRows } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Button } from "../../../ui/Button.tsx";
import { Pieces } from "./Pieces.tsx";

const text = agents.docs;

/** Two versions of a text side by side, with the words that changed. Below each other where there is no room. */
export function PageDiff({ before, after }: { before: string; after: string }) {
  const blocks = useMemo(() => foldRows(diffPages(before, after)), [before, after]);
  if (before === after) return <p className="muted">{text.sameText}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="agent-diff" aria-label={text.diffName} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.left}</th>
            <th scope="col">{text.right}</th>
          </tr>
        </thead>
        {blocks.map((block, at) => (
          <Block key={at} block={block} />
        ))}
      </table>
    </section>
  );
}

function Block({ block }: { block: DiffBlock }) {
  const [isOpen, setOpen] = useState(block.kind === "rows");
  return (
    <tbody>
      {isOpen ? (
        block.rows.map((row, at) => <Row key={at} row={row} />)
      ) : (
        <tr>
          <td colSpan={2}>
            <Button kind="quiet" onClick={() => setOpen(true)}>
              {text.gap(block.rows.length)}
            </Button>
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Row({ row }: { row: DiffRow }) {
  return (
    <tr data-changed={row.isChanged}>
      <td dir="auto">{row.before && <Pieces pieces={row.before} />}</td>
      <td dir="auto">{row.after && <Pieces pieces={row.after} />}</td>
    </tr>
  );
}
