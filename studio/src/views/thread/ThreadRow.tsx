import { memo } from "react";

import type { Json, JsonObject } from "../../api/json.ts";
import type { Thread } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { shortId } from "../../pure/format.ts";
import { previewOf, visibleText } from "../../pure/json_tree.ts";
import { activityOf, interruptCount } from "../../pure/thread_filter.ts";
import { thread as text } from "../../text/thread.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Time } from "../../ui/Time.tsx";
import { ActivityBadge } from "./ActivityBadge.tsx";
import { assistantOf } from "./pane.ts";

/** What the server adds to the metadata of every thread. */
const OWN_FIELDS = new Set(["graph_id", "assistant_id", "created_by"]);
const FIELDS_MAX = 4;

/** A thread in the list. */
export const ThreadRow = memo(function ThreadRow({ thread }: { thread: Thread }) {
  const open = interruptCount(thread);
  const graph = assistantOf(thread)?.graph;
  const metadata = Object.entries(thread.metadata as JsonObject).filter(([name]) => !OWN_FIELDS.has(name));
  return (
    <Link className="thread-row" href={hrefOf(["threads", thread.thread_id])}>
      <span className="thread-row-name">
        <bdi>{graph === undefined ? text.list.noGraph : visibleText(graph)}</bdi>{" "}
        <span className="mono muted">{shortId(thread.thread_id)}</span>
      </span>
      <span className="row">
        <ActivityBadge activity={activityOf(thread)} />
        {open > 1 && <Badge tone="warn">{text.list.waiting(open)}</Badge>}
      </span>
      <span className="small muted thread-row-more">
        {metadata.slice(0, FIELDS_MAX).map(([name, value]) => (
          <Field key={name} name={name} value={value} />
        ))}
      </span>
      <span className="small muted thread-row-time">
        {text.list.changed} <Time at={thread.updated_at} />
      </span>
    </Link>
  );
});

function Field({ name, value }: { name: string; value: Json }) {
  return (
    <bdi className="thread-row-field">
      {visibleText(name.slice(0, 40))}=
      {visibleText(typeof value === "string" ? value.slice(0, 80) : previewOf(value, 60))}
    </bdi>
  );
}
