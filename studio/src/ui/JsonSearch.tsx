import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useState } from "react";

import type { Json } from "../api/json.ts";
import { type SearchResult, searchTree } from "../pure/json_tree.ts";
import { thread } from "../text/thread.ts";
import { Button } from "./Button.tsx";

interface JsonSearchProps {
  value: Json;
  onResult: (result: SearchResult) => void;
  /** Shows a match. */
  onShow: (pointer: string) => void;
}

const text = thread.tree;

/** A field to search in a tree, and buttons that go from match to match. */
export function JsonSearch({ value, onResult, onShow }: JsonSearchProps) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(-1);
  // All of the value is read for a search, so typing comes first.
  const wanted = useDeferredValue(typed);
  const result = useMemo(() => searchTree(value, wanted), [value, wanted]);
  useEffect(() => onResult(result), [result, onResult]);
  const { found, isCut } = result;
  const go = (step: number) => {
    const next = (Math.max(at, step > 0 ? -1 : 0) + step + found.length) % found.length;
    const pointer = found[next];
    if (pointer === undefined) return;
    setAt(next);
    onShow(pointer);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(event.shiftKey ? -1 : 1);
  };
  return (
    <search className="json-tree-search">
      <input
        className="input"
        type="search"
        aria-label={text.search}
        placeholder={text.search}
        value={typed}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(-1);
        }}
      />
      {wanted.trim() && (
        <>
          <span className="small muted" role="status">
            {text.matches(Math.min(at + 1, found.length), found.length, isCut)}
          </span>
          <Button aria-label={text.previous} disabled={found.length === 0} onClick={() => go(-1)}>
            ↑
          </Button>
          <Button aria-label={text.next} disabled={found.length === 0} onClick={() => go(1)}>
            ↓
          </Button>
        </>
      )}
    </search>
  );
}
