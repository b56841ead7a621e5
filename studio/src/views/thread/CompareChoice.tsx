import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useMemo, useState } from "react";

import { threadsQuery } from "../../api/queries.ts";
import type { CheckpointTree, Thread } from "../../api/types.ts";
import { setQuery } from "../../app/location.ts";
import { type Branch, branchesOf } from "../../pure/branches.ts";
import { shortId } from "../../pure/format.ts";
import { activityOf, formatCompare, parseCompare } from "../../pure/thread_filter.ts";
import { branchOf } from "../../pure/timeline.ts";
import { thread as texts } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { assistantOf } from "./pane.ts";

const text = texts.compare;

interface CompareChoiceProps {
  thread: Thread;
  tree: CheckpointTree | undefined;
  shown: string | undefined;
  /** What the address says. */
  wanted: string;
}

/** What to compare with. The choice is part of the address. */
export function CompareChoice({ thread, tree, shown, wanted }: CompareChoiceProps) {
  const id = useId();
  const branches = useMemo(() => (tree ? branchesOf(tree) : []), [tree]);
  const near = useMemo(() => checkpointsNear(tree, branches, shown), [tree, branches, shown]);
  const graph = assistantOf(thread)?.graph;
  const { data: others } = useQuery(threadsQuery({ graph, limit: 20, offset: 0 }));
  const threads = (others?.items ?? []).filter((each) => each.thread_id !== thread.thread_id);
  const known = new Set([
    ...near.map((each) => each.value),
    ...threads.map((each) => formatCompare({ thread: each.thread_id, checkpoint: undefined })),
  ]);
  return (
    <div className="row compare-choice">
      <div className="field">
        <label htmlFor={id}>{text.with}</label>
        <select
          id={id}
          value={wanted}
          onChange={(event) => setQuery({ tab: "compare", compare: event.target.value || undefined })}
        >
          <option value="">{text.choose}</option>
          {wanted && !known.has(wanted) && <option value={wanted}>{nameOf(wanted)}</option>}
          {near.map(({ value, name }) => (
            <option key={name} value={value}>
              {name}
            </option>
          ))}
          <optgroup label={text.threads}>
            {threads.map((each) => (
              <option
                key={each.thread_id}
                value={formatCompare({ thread: each.thread_id, checkpoint: undefined })}
              >
                {text.thread(shortId(each.thread_id), texts.activity[activityOf(each)])}
              </option>
            ))}
          </optgroup>
        </select>
      </div>
      <OtherThread />
      {shown && shown !== wanted && (
        <Button title={text.pinHint} onClick={() => setQuery({ tab: "compare", compare: shown })}>
          {text.pin}
        </Button>
      )}
    </div>
  );
}

function OtherThread() {
  const id = useId();
  const [typed, setTyped] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const entered = typed.trim();
    // An id alone is a thread: checkpoints are chosen along the timeline.
    if (entered) setQuery({ tab: "compare", compare: entered.includes(":") ? entered : `${entered}:` });
  };
  return (
    <form className="row compare-choice" onSubmit={submit}>
      <div className="field">
        <label htmlFor={id}>{text.otherThread}</label>
        <input
          id={id}
          value={typed}
          placeholder={text.otherThreadHint}
          onChange={(event) => setTyped(event.target.value)}
        />
      </div>
      <Button type="submit" disabled={typed.trim() === ""}>
        {text.compare}
      </Button>
    </form>
  );
}

function nameOf(wanted: string): string {
  const parsed = parseCompare(wanted);
  if (!parsed) return wanted;
  const checkpoint = parsed.checkpoint && shortId(parsed.checkpoint);
  if (parsed.thread === undefined) return text.pinned(checkpoint ?? "");
  return text.pinnedThread(shortId(parsed.thread), checkpoint);
}

/** Returns the checkpoints of the thread that are worth comparing with, each once. */
function checkpointsNear(
  tree: CheckpointTree | undefined,
  branches: readonly Branch[],
  shown: string | undefined,
): { value: string; name: string }[] {
  if (!tree || !shown) return [];
  const branch = branchOf(tree, shown);
  const place = branch.findIndex((each) => each.checkpoint_id === shown);
  const run = branch.find((each) => each.run_id === branch[place]?.run_id);
  const found = [
    { value: branch[place - 1]?.checkpoint_id, name: text.previous },
    { value: run?.checkpoint_id, name: text.runStart },
    { value: branch[0]?.checkpoint_id, name: text.first },
    ...branches.map(({ tip }, at) => ({ value: tip.checkpoint_id, name: text.branch(at + 1) })),
  ];
  const seen = new Set([shown]);
  return found.flatMap(({ value, name }) => {
    if (value === undefined || seen.has(value)) return [];
    seen.add(value);
    return [{ value, name }];
  });
}
