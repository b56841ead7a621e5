import { memo } from "react";

import type { InboxItem } from "../../api/types.ts";
import { useMay } from "../../app/me.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { decidedAnswer, formOf, isDirect, sendDecided } from "./answering.ts";
import { useDrafts } from "./drafts.ts";
import { InterruptCard } from "./InterruptCard.tsx";
import { useOutbox } from "./outbox.ts";

/** The questions of one thread, and the button that sends their answers together. */
export const QuestionGroup = memo(function QuestionGroup({
  group,
  current,
}: {
  group: readonly InboxItem[];
  current: string | undefined;
}) {
  const [first] = group;
  return (
    <div className="stack inbox-group">
      {group.length > 1 && <p>{text.together(group.length)}</p>}
      {group.map((item) => (
        <InterruptCard
          key={item.interrupt.id}
          group={group}
          item={item}
          isCurrent={item.interrupt.id === (current ?? first?.interrupt.id)}
        />
      ))}
      <SendBar group={group} />
    </div>
  );
});

/** Sends what is decided. It is there only if answers are not sent one by one. */
function SendBar({ group }: { group: readonly InboxItem[] }) {
  const may = useMay();
  const drafts = useDrafts(group.map((item) => item.interrupt.id));
  const outbox = useOutbox();
  const [first] = group;
  if (!first || !may("answer") || isDirect(group, formOf(first))) return null;
  const entry = outbox.get(first.thread_id);
  // Answers to a thread that are on their way come first.
  if (entry && ["held", "sending", "away"].includes(entry.phase.name)) return null;
  const decided = group.filter((item, at) => decidedAnswer(item, drafts[at] ?? {}) !== undefined);
  return (
    <div className="row inbox-send">
      <Button kind="primary" disabled={decided.length === 0} onClick={() => sendDecided(group)}>
        {text.sendAll(decided.length, group.length)}
      </Button>
      {decided.length > 0 && decided.length < group.length && (
        <span className="small muted">{text.othersStay}</span>
      )}
    </div>
  );
}
