import { useQuery } from "@tanstack/react-query";

import { assistantsQuery, traceQuery } from "../../api/queries.ts";
import type { Thread } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, setQuery } from "../../app/location.ts";
import { formatCost, formatCount, shortId } from "../../pure/format.ts";
import { visibleText } from "../../pure/json_tree.ts";
import { activityOf } from "../../pure/thread_filter.ts";
import { thread as text } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { LongText } from "../../ui/LongText.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { ActivityBadge } from "./ActivityBadge.tsx";
import { ThreadActions } from "./ThreadActions.tsx";

interface ThreadHeaderProps {
  thread: Thread;
  /** `undefined` before the first run. */
  graph: string | undefined;
  assistant: string | undefined;
  /** The checkpoint on screen. */
  checkpoint: string | undefined;
}

const view = text.view;

/** Which thread it is, how it is doing, what it cost, and what can be done with it. */
export function ThreadHeader({ thread, graph, assistant, checkpoint }: ThreadHeaderProps) {
  const { data: assistants } = useQuery(assistantsQuery);
  const found = assistants?.find((each) => each.assistant_id === assistant);
  const name = found?.name || graph || text.list.noGraph;
  return (
    <header className="thread-header">
      <div className="row thread-title">
        <Link className="small" href={hrefOf(["threads"])}>
          {view.back}
        </Link>
        <h1>
          <bdi>{visibleText(name)}</bdi>{" "}
          <span className="mono muted" title={thread.thread_id}>
            {shortId(thread.thread_id)}
          </span>
        </h1>
        <span role="status">
          <ActivityBadge activity={activityOf(thread)} />
        </span>
        <span className="spacer" />
        <ThreadActions thread={thread} name={name} assistant={assistant} checkpoint={checkpoint} />
      </div>
      <Facts thread={thread} />
      {thread.status === "error" && <FailedRun thread={thread} />}
    </header>
  );
}

function Facts({ thread }: { thread: Thread }) {
  const { data: trace } = useQuery(traceQuery(thread.thread_id));
  return (
    <dl className="thread-facts small">
      <div>
        <dt>{view.cost}</dt>
        <dd>
          {trace ? formatCost(trace.cost) : "…"}
          {trace && trace.cost.model_calls > 0 && (
            <span className="muted">
              {" · "}
              {view.tokens(formatCount(trace.cost.input_tokens), formatCount(trace.cost.output_tokens))}
            </span>
          )}
        </dd>
      </div>
      <div>
        <dt>{view.started}</dt>
        <dd>
          <Time at={thread.created_at} />
        </dd>
      </div>
      <div>
        <dt>{view.changed}</dt>
        <dd>
          <Time at={thread.updated_at} />
        </dd>
      </div>
    </dl>
  );
}

function FailedRun({ thread }: { thread: Thread }) {
  const { error } = thread;
  const message = typeof error === "string" ? error : error ? messageOf(error) : "";
  return (
    <Notice tone="bad" title={view.failedTitle}>
      {message && (
        <p className="thread-error">
          <LongText text={message} />
        </p>
      )}
      <p>{view.failedNext}</p>
      <Button onClick={() => setQuery({ tab: "trace" })}>{view.openTrace}</Button>
    </Notice>
  );
}

function messageOf(error: object): string {
  const { message, error: kind } = error as Record<string, unknown>;
  if (typeof message !== "string") return JSON.stringify(error);
  return typeof kind === "string" && kind !== message ? `${kind}: ${message}` : message;
}
