import { memo, useRef } from "react";

import type { Json } from "../api/json.ts";
import type { StateDiff } from "../api/types.ts";
import { readablePath, visibleText } from "../pure/json_tree.ts";
import { thread } from "../text/thread.ts";
import { Badge } from "./Badge.tsx";
import { JsonTree } from "./JsonTree.tsx";
import { LongText } from "./LongText.tsx";
import { VirtualRows } from "./VirtualRows.tsx";
import { WordDiff } from "./WordDiff.tsx";
import "./ChangeList.css";

type Change = StateDiff["changes"][number];

const text = thread.changes;
const TONES = { added: "good", removed: "bad", changed: "warn" } as const;

/** Where two states differ, with the values of both. */
export const ChangeList = memo(function ChangeList({ changes }: { changes: StateDiff["changes"] }) {
  const scroll = useRef<HTMLDivElement>(null);
  if (changes.length === 0) return <p className="muted">{text.none}</p>;
  return (
    // It scrolls, so the keyboard must reach it.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above.
    // biome-ignore lint/a11y/useSemanticElements: its rows are placed by elements in between.
    <div ref={scroll} className="changes" role="list" aria-label={text.name} tabIndex={0}>
      <VirtualRows
        count={changes.length}
        estimate={110}
        scroll={scroll}
        role="listitem"
        keyOf={(index) => `${index} ${changes[index]?.subgraph ?? ""} ${changes[index]?.path}`}
        row={(index) => {
          const change = changes[index];
          return change && <ChangeRow change={change} />;
        }}
      />
    </div>
  );
});

function kindOf(change: Change): keyof typeof TONES {
  if (!("before" in change)) return "added";
  return "after" in change ? "changed" : "removed";
}

const ChangeRow = memo(function ChangeRow({ change }: { change: Change }) {
  const kind = kindOf(change);
  return (
    <div className="change">
      <div className="row">
        <Badge tone={TONES[kind]}>{text.kinds[kind]}</Badge>
        <bdi className="change-path">{visibleText(readablePath(change.path)) || text.all}</bdi>
        {change.id !== undefined && (
          <bdi className="small muted">{text.item(visibleText(change.id.slice(0, 80)))}</bdi>
        )}
        {change.subgraph !== undefined && (
          <Badge tone="accent">
            <bdi>{text.subgraph(visibleText(change.subgraph))}</bdi>
          </Badge>
        )}
      </div>
      <ChangeValues change={change} />
    </div>
  );
});

function ChangeValues({ change }: { change: Change }) {
  const { before, after } = change as { before?: Json; after?: Json };
  if (typeof before === "string" && typeof after === "string") {
    return <WordDiff before={before} after={after} />;
  }
  return (
    <div className="change-values">
      {before !== undefined && (
        <div>
          {after !== undefined && <span className="small muted">{text.before}</span>}
          <SideValue value={before} side="removed" name={text.before} />
        </div>
      )}
      {after !== undefined && (
        <div>
          {before !== undefined && <span className="small muted">{text.after}</span>}
          <SideValue value={after} side="added" name={text.after} />
        </div>
      )}
    </div>
  );
}

function SideValue({ value, side, name }: { value: Json; side: "added" | "removed"; name: string }) {
  if (typeof value === "object" && value !== null) return <JsonTree name={name} value={value} />;
  return (
    <div>
      <span className={`change-scalar ${side}`}>
        {typeof value === "string" ? <LongText text={value} isQuoted /> : String(value)}
      </span>
    </div>
  );
}
