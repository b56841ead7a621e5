import { type KeyboardEvent, memo, type ReactNode, useId, useMemo, useRef, useState } from "react";

import type { Json } from "../api/json.ts";
import { containersOf, type SearchResult, type TreeRow, treeRows, valueRowId } from "../pure/json_tree.ts";
import { initiallyOpen, keyAction } from "../pure/json_tree_keys.ts";
import { JsonRow } from "./JsonRow.tsx";
import { JsonSearch } from "./JsonSearch.tsx";
import { JsonSelected } from "./JsonSelected.tsx";
import { VirtualRows } from "./VirtualRows.tsx";
import "./JsonTree.css";

export interface JsonTreeProps {
  /** Names the tree for screen readers. */
  name: string;
  value: Json;
  /** JSON Pointers that are open at first and marked as changed. */
  changed?: ReadonlySet<string>;
  /** Labels by JSON Pointer. */
  labels?: ReadonlyMap<string, readonly string[]>;
  /** Whether there is a field to search in it. */
  hasSearch?: boolean;
  /** What to show about the selected value besides its path. */
  details?: (pointer: string) => ReactNode;
}

const NOTHING: ReadonlySet<string> = new Set();
const NO_LABELS: ReadonlyMap<string, readonly string[]> = new Map();
const NO_MATCHES: SearchResult = { found: [], isCut: false };

/** A value of JSON as a tree, of which only what is open and visible is drawn. */
export const JsonTree = memo(function JsonTree(props: JsonTreeProps) {
  const { name, value, changed = NOTHING, labels = NO_LABELS } = props;
  const tree = useOpenRows(value, props.changed);
  const [active, setActive] = useState<string>();
  const [matches, setMatches] = useState(NO_MATCHES);
  const scroll = useRef<HTMLDivElement>(null);
  const baseId = useId();
  const around = useMemo(() => containersOf(changed), [changed]);
  const labelsAround = useMemo(() => containersOf(labels.keys()), [labels]);
  const matching = useMemo(() => new Set(matches.found), [matches]);
  const place = active === undefined ? -1 : tree.rows.findIndex((row) => row.id === active);
  const select = (row: TreeRow) => setActive(row.id);
  const onKeyDown = (event: KeyboardEvent) => {
    const action = keyAction(event.key, tree.rows, place);
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (action.toggle) tree.toggle(action.row);
    setActive(action.row.id);
  };
  const activeRow = tree.rows[place];
  return (
    <div className="json-tree">
      {props.hasSearch && (
        <JsonSearch
          value={value}
          onResult={setMatches}
          onShow={(pointer) => {
            tree.reveal(pointer);
            setActive(valueRowId(pointer));
          }}
        />
      )}
      <div
        ref={scroll}
        className="json-tree-rows"
        role="tree"
        aria-label={name}
        tabIndex={0}
        aria-activedescendant={place >= 0 ? `${baseId}-${place}` : undefined}
        onKeyDown={onKeyDown}
      >
        <VirtualRows
          count={tree.rows.length}
          estimate={22}
          scroll={scroll}
          active={place >= 0 ? place : undefined}
          role="presentation"
          keyOf={(index) => tree.rows[index]?.id ?? ""}
          row={(index) => {
            const row = tree.rows[index];
            if (!row) return null;
            return (
              <JsonRow
                id={`${baseId}-${index}`}
                row={row}
                isActive={index === place}
                isMatch={row.kind === "value" && matching.has(row.pointer)}
                changed={changeOf(row, changed, around)}
                labels={row.kind === "value" ? labels.get(row.pointer) : undefined}
                hasLabelsInside={!row.isOpen && labelsAround.has(row.pointer)}
                onSelect={select}
                onToggle={tree.toggle}
              />
            );
          }}
        />
      </div>
      {activeRow?.kind === "value" && (
        <JsonSelected
          key={activeRow.pointer}
          pointer={activeRow.pointer}
          value={activeRow.value}
          details={props.details}
        />
      )}
    </div>
  );
});

function changeOf(
  row: TreeRow,
  changed: ReadonlySet<string>,
  around: ReadonlySet<string>,
): "here" | "inside" | undefined {
  if (row.kind !== "value") return undefined;
  if (changed.has(row.pointer)) return "here";
  return around.has(row.pointer) ? "inside" : undefined;
}

/** Which rows are open: those with changes, and what the visitor opened and closed since, which another value does not undo. */
function useOpenRows(value: Json, changed: ReadonlySet<string> | undefined) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const byDefault = useMemo(() => initiallyOpen(value, changed), [value, changed]);
  const rows = useMemo(() => {
    const open = new Set(byDefault);
    for (const [id, isOpen] of chosen) isOpen ? open.add(id) : open.delete(id);
    return treeRows(value, open);
  }, [value, byDefault, chosen]);
  const toggle = (row: TreeRow) => setChosen((before) => new Map(before).set(row.id, !row.isOpen));
  const reveal = (pointer: string) => {
    const around = initiallyOpen(value, new Set([pointer]), false);
    setChosen((before) => new Map([...before, ...[...around].map((id): [string, boolean] => [id, true])]));
  };
  return { rows, toggle, reveal };
}
