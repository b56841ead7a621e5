import { useMemo, useState } from "react";

import { type ChangeSet, gridOf, summarize } from "../../../pure/change_set.ts";
import { agents } from "../../../text/agents.ts";
import { Notes } from "../parts/Notes.tsx";
import { Section } from "../parts/Section.tsx";
import { Word, Words } from "../parts/Words.tsx";
import { ChangeGrid } from "./ChangeGrid.tsx";
import { Checks } from "./Checks.tsx";
import { SheetTable } from "./SheetTable.tsx";

const text = agents.sheet;

/** A change set: which sheets and ranges first, then the cells of one sheet with before and after. */
export function ChangeSetView({ changes, title = text.changes }: { changes: ChangeSet; title?: string }) {
  const [chosen, setChosen] = useState<string>();
  const names = useMemo(() => [...new Set(changes.ranges.map(({ sheet }) => sheet))], [changes]);
  const sheet = chosen !== undefined && names.includes(chosen) ? chosen : names[0];
  const grid = useMemo(
    () => (sheet === undefined ? undefined : gridOf(changes.ranges.filter((range) => range.sheet === sheet))),
    [changes, sheet],
  );
  return (
    <div className="stack">
      <Notes tone="bad" title={text.problem} notes={changes.problem ? [changes.problem] : []} />
      <Section level={3} title={[title, text.cells(changes.cells)].filter(Boolean).join(": ")}>
        {changes.summary && <Words text={changes.summary} />}
        <SheetTable sheets={changes.sheets} withCells={names} shown={sheet} onShow={setChosen} />
        <Ranges changes={changes} />
      </Section>
      {grid && sheet !== undefined && <ChangeGrid key={sheet} sheet={sheet} grid={grid} />}
      <Notes tone="plain" title={text.looks} notes={changes.looks} />
      <Notes title={text.leftOut} notes={changes.leftOut} />
      <Checks checks={changes.checks} />
    </div>
  );
}

const RANGES_MAX = 200;

function Ranges({ changes }: { changes: ChangeSet }) {
  const ranges = useMemo(() => summarize(changes.ranges), [changes]);
  if (ranges.length === 0) return null;
  return (
    <details>
      <summary>{text.ranges(changes.ranges.length)}</summary>
      <ul className="agent-list">
        {ranges.slice(0, RANGES_MAX).map((range, at) => (
          <li key={at}>
            <code>
              <Word text={range.range} />
            </code>{" "}
            {text.rangeLine(range.cells, range.what, range.ranges)}
          </li>
        ))}
        {ranges.length > RANGES_MAX && <li>…</li>}
      </ul>
    </details>
  );
}
