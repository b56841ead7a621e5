import { type ReactNode, useState } from "react";

import type { Json } from "../api/json.ts";
import { readablePath, visibleText } from "../pure/json_tree.ts";
import { thread } from "../text/thread.ts";
import { Button } from "./Button.tsx";
import { copyText } from "./clipboard.ts";

interface JsonSelectedProps {
  pointer: string;
  value: Json;
  details: ((pointer: string) => ReactNode) | undefined;
}

const text = thread.tree;

/** What is selected in a tree: where it is, and what can be done with it. */
export function JsonSelected({ pointer, value, details }: JsonSelectedProps) {
  const [outcome, setOutcome] = useState("");
  const copy = async (copied: string) => {
    setOutcome((await copyText(copied)) ? text.copied : text.copyFailed);
  };
  const asText = () => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  return (
    <section className="json-tree-selected" aria-label={text.selected}>
      <div className="row small">
        <bdi className="mono">{visibleText(readablePath(pointer)) || text.root}</bdi>
        <span role="status" className="muted">
          {outcome}
        </span>
        <Button onClick={() => void copy(asText())}>{text.copyValue}</Button>
        <Button onClick={() => void copy(pointer)}>{text.copyPath}</Button>
      </div>
      {details?.(pointer)}
    </section>
  );
}
