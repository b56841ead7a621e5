import { memo } from "react";
import type { CellChange, CellValue } from "../../../pure/change_set.ts";
import { visibleText } from "../../../pure/visible_text.ts";
import { agents } from "../../../text/agents.ts";
import { Word } from "../parts/Words.tsx";

const text = agents.sheet;
const CHARS_MAX = 200;

/** A cell with what it had before and has after. Empty if it did not change. */
export const ChangedCell = memo(function ChangedCell(props: {
  change: CellChange | undefined;
  isCodeShown: boolean;
}) {
  const { change, isCodeShown } = props;
  if (!change) return <td className="agent-cell-same" />;
  const { before, after, step, line } = change;
  return (
    <td>
      {before && (
        <del className="agent-cell removed">
          <span className="visually-hidden">{text.before}: </span>
          <Value value={before} />
        </del>
      )}
      <ins className="agent-cell added">
        <span className="visually-hidden">{text.after}: </span>
        {after ? <Value value={after} /> : <em>{text.empty}</em>}
      </ins>
      {isCodeShown && step !== undefined && line !== undefined && (
        <span className="small muted agent-cell">{text.by(step, line)}</span>
      )}
    </td>
  );
});

/** A long value folds: everything that would be saved can be read. */
function Value({ value }: { value: CellValue }) {
  const shown = value.text === "" ? '""' : value.text;
  const words = (part: string) =>
    value.kind === "formula" ? <code>{visibleText(part)}</code> : <Word text={part} />;
  if (shown.length <= CHARS_MAX) return words(shown);
  return (
    <details>
      <summary>{words(`${shown.slice(0, CHARS_MAX)}…`)}</summary>
      {words(shown)}
    </details>
  );
}
