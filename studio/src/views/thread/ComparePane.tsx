import { useQuery } from "@tanstack/react-query";

import { treeQuery } from "../../api/queries.ts";
import type { StateDiff } from "../../api/types.ts";
import { usePageLocation } from "../../app/location.ts";
import { shortId } from "../../pure/format.ts";
import { type ComparedWith, parseCompare } from "../../pure/thread_filter.ts";
import { thread as texts } from "../../text/thread.ts";
import { ChangeList } from "../../ui/ChangeList.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { CompareChoice } from "./CompareChoice.tsx";
import type { PaneProps } from "./pane.ts";
import { compareQuery } from "./queries.ts";

const text = texts.compare;

/** Where the selected state differs from another one, of this thread or of another. */
export function ComparePane({ thread, checkpoint }: PaneProps) {
  const { query } = usePageLocation();
  const id = thread.thread_id;
  const { data: tree } = useQuery(treeQuery(id));
  const shown = checkpoint ?? tree?.current ?? undefined;
  const wanted = query.get("compare") ?? "";
  const other = parseCompare(wanted);
  return (
    <div className="stack">
      <CompareChoice thread={thread} tree={tree} shown={shown} wanted={wanted} />
      {wanted && !other && <p className="field-problem">{text.wrong}</p>}
      {!wanted && (
        <Notice title={text.emptyTitle}>
          <p>{text.emptyNext}</p>
        </Notice>
      )}
      {other && shown && <Differences thread={id} checkpoint={shown} other={other} />}
    </div>
  );
}

interface DifferencesProps {
  thread: string;
  checkpoint: string;
  other: ComparedWith;
}

function Differences({ thread, checkpoint, other }: DifferencesProps) {
  const { data, error, refetch, isPlaceholderData } = useQuery(compareQuery(thread, checkpoint, other));
  if (error && !data) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading what={text.what} />;
  return (
    <div className="stack" aria-busy={isPlaceholderData}>
      <dl className="thread-facts small">
        <div>
          <dt>{text.before}</dt>
          <dd>{sideName(data.from, thread)}</dd>
        </div>
        <div>
          <dt>{text.after}</dt>
          <dd>{sideName(data.to, thread)}</dd>
        </div>
      </dl>
      <p role="status" className="small">
        {data.changes.length > 0 && text.count(data.changes.length)}
      </p>
      {data.changes.length === 0 ? (
        <Notice title={text.sameTitle}>
          <p>{text.sameNext}</p>
        </Notice>
      ) : (
        <ChangeList changes={data.changes} />
      )}
    </div>
  );
}

function sideName(side: StateDiff["from"], thread: string): string {
  const name = side.thread_id === thread ? text.thisThread : `thread ${shortId(side.thread_id)}`;
  return side.checkpoint_id === null ? text.nothing : text.at(name, shortId(side.checkpoint_id));
}
