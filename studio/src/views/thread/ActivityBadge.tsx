import type { ThreadActivity } from "../../pure/thread_filter.ts";
import { thread as text } from "../../text/thread.ts";
import { Badge, type Tone } from "../../ui/Badge.tsx";

const TONES: Record<ThreadActivity, Tone> = {
  new: "plain",
  running: "accent",
  waiting: "warn",
  paused: "plain",
  failed: "bad",
  finished: "good",
};

export function ActivityBadge({ activity }: { activity: ThreadActivity }) {
  return <Badge tone={TONES[activity]}>{text.activity[activity]}</Badge>;
}
