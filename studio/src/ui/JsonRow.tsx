import { type CSSProperties, memo } from "react";

import type { Json } from "../api/json.ts";
import { previewOf, type TreeRow, visibleText } from "../pure/json_tree.ts";
import { thread } from "../text/thread.ts";
import { Badge } from "./Badge.tsx";
import { LongText } from "./LongText.tsx";

interface JsonRowProps {
  id: string;
  row: TreeRow;
  isActive: boolean;
  isMatch: boolean;
  changed: "here" | "inside" | undefined;
  labels: readonly string[] | undefined;
  hasLabelsInside: boolean;
  onSelect: (row: TreeRow) => void;
  onToggle: (row: TreeRow) => void;
}

const text = thread.tree;

/** One row of a tree. The tree has the keyboard; the mouse opens with a click. */
export const JsonRow = memo(function JsonRow(props: JsonRowProps) {
  const { row, changed, labels } = props;
  const canOpen = row.kind === "page" || (row.count ?? 0) > 0;
  const style: CSSProperties & { "--depth": number } = { "--depth": row.depth };
  return (
    // The tree around it takes the keys and points here with `aria-activedescendant`.
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above.
    // biome-ignore lint/a11y/useFocusableInteractive: see above.
    <div
      id={props.id}
      className="json-row"
      role="treeitem"
      style={style}
      aria-level={row.depth + 1}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-expanded={canOpen ? row.isOpen : undefined}
      aria-selected={props.isActive}
      aria-label={labelOf(props)}
      data-changed={changed}
      data-match={props.isMatch || undefined}
      onClick={() => {
        props.onSelect(row);
        // Whoever selects text in it does not want to close it.
        if (canOpen && getSelection()?.isCollapsed !== false) props.onToggle(row);
      }}
    >
      <span className="json-twisty" aria-hidden="true" />
      <bdi className="json-name">{nameOf(row)}</bdi>
      {row.kind === "value" && <RowValue row={row} />}
      {labels?.map((label) => (
        <Badge key={label} tone="label">
          <bdi>{visibleText(label.slice(0, 60))}</bdi>
        </Badge>
      ))}
      {props.hasLabelsInside && <Badge tone="label">{text.containsLabels}</Badge>}
    </div>
  );
});

function RowValue({ row }: { row: TreeRow & { kind: "value" } }) {
  const { value, count } = row;
  if (count === undefined) {
    return (
      <span className="json-value" data-type={value === null ? "null" : typeof value}>
        {typeof value === "string" ? <LongText text={value} isQuoted /> : String(value)}
      </span>
    );
  }
  return (
    <bdi className="json-value" data-type="closed">
      {sizeOf(value, count)}
      {!row.isOpen && count > 0 && ` ${visibleText(previewOf(value, 120))}`}
    </bdi>
  );
}

function sizeOf(value: Json, count: number): string {
  return Array.isArray(value) ? text.items(count) : text.fields(count);
}

function nameOf(row: TreeRow): string {
  if (row.kind === "page") return text.page(row.first, row.end);
  return row.name === undefined ? text.root : visibleText(String(row.name).slice(0, 200));
}

function labelOf({ row, changed, labels, hasLabelsInside }: JsonRowProps): string {
  const marks = [
    changed === "here" && text.changed,
    changed === "inside" && text.containsChanges,
    labels && text.labels(labels),
    hasLabelsInside && text.containsLabels,
  ];
  let value = "";
  if (row.kind === "value") {
    value = row.count === undefined ? previewOf(row.value, 200) : sizeOf(row.value, row.count);
  }
  return text.row(
    nameOf(row),
    visibleText(value),
    marks.filter((mark) => typeof mark === "string"),
  );
}
