import { useId, useState } from "react";

import type { PageVersion } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Words } from "../parts/Words.tsx";
import { PageDiff } from "./PageDiff.tsx";

const text = agents.docs;

export function versionName({ iteration, score }: PageVersion): string {
  const name = iteration === 0 ? text.firstDraft : text.version(iteration);
  return `${name} (${score === undefined ? text.unscored : text.scored(score)})`;
}

/** Two versions of a page to choose; at first the last two. */
export function Versions({ versions }: { versions: PageVersion[] }) {
  const [older, setOlder] = useState<number>();
  const [newer, setNewer] = useState<number>();
  const last = versions.length - 1;
  const [left, right] = [versions[older ?? last - 1], versions[newer ?? last]];
  if (!left || !right) {
    return (
      <>
        <p className="muted">{text.oneVersion}</p>
        {versions[0] && <Words text={versions[0].text} />}
      </>
    );
  }
  return (
    <div className="stack">
      <div className="agent-columns">
        <Choice name={text.older} versions={versions} value={versions.indexOf(left)} onChange={setOlder} />
        <Choice name={text.newer} versions={versions} value={versions.indexOf(right)} onChange={setNewer} />
      </div>
      <PageDiff before={left.text} after={right.text} />
    </div>
  );
}

interface ChoiceProps {
  name: string;
  versions: PageVersion[];
  value: number;
  onChange: (at: number) => void;
}

function Choice({ name, versions, value, onChange }: ChoiceProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{name}</label>
      <select id={id} value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {versions.map((version, at) => (
          <option key={at} value={at}>
            {versionName(version)}
          </option>
        ))}
      </select>
    </div>
  );
}
