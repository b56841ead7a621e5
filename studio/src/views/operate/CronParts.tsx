import { useState } from "react";

import type { Cron } from "../../api/types.ts";
import { scheduleInWords } from "../../pure/cron_words.ts";
import { operate } from "../../text/operate.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { changeCron, deleteCron, refreshOperate } from "./api.ts";
import { Foreign } from "./Foreign.tsx";
import { Confirm, useAction } from "./parts.tsx";

const text = operate.crons;

/** Says when a cron runs, or repeats its expression. */
export function wordsOf(cron: Cron): string {
  return scheduleInWords(cron.schedule) ?? cron.schedule;
}

export function ScheduleWords({ cron }: { cron: Cron }) {
  return (
    <>
      <Foreign text={wordsOf(cron)} />
      <p className="muted small">
        <Foreign text={cron.schedule} max={80} isCode /> · <Foreign text={cron.timezone ?? "UTC"} max={60} />
      </p>
    </>
  );
}

export function CronState({ cron }: { cron: Cron }) {
  return <Badge tone={cron.enabled ? "good" : "plain"}>{cron.enabled ? text.enabled : text.disabled}</Badge>;
}

export function NextRun({ cron }: { cron: Cron }) {
  if (!cron.next_run_date) return text.noNext;
  return (
    <>
      <Time at={cron.next_run_date} />
      <p className="muted small">{inZone(cron.next_run_date, cron.timezone)}</p>
    </>
  );
}

/** A time on the clocks of the cron's zone. The browser may not know the zone. */
function inZone(at: string, zone: string | null): string {
  const options = { dateStyle: "medium", timeStyle: "short" } as const;
  try {
    return new Date(at).toLocaleString("en", { ...options, timeZone: zone ?? "UTC" });
  } catch {
    return new Date(at).toLocaleString("en", { ...options, timeZone: "UTC" });
  }
}

/** Enables, disables and deletes a cron. */
export function CronButtons({
  cron,
  agent,
  onDeleted,
}: {
  cron: Cron;
  agent: string;
  onDeleted?: () => void;
}) {
  const [isDeleting, setIsDeleting] = useState(false);
  const change = useAction(
    () => changeCron(cron.cron_id, { enabled: !cron.enabled }),
    () => void refreshOperate("crons"),
  );
  const remove = useAction(
    () => deleteCron(cron.cron_id),
    () => {
      setIsDeleting(false);
      onDeleted?.();
      void refreshOperate("crons");
    },
  );
  const label = cron.enabled ? text.disable : text.enable;
  const when = wordsOf(cron);
  return (
    <div className="operate-buttons">
      <Button aria-label={text.of(label, agent, when)} disabled={change.isBusy} onClick={() => change.run()}>
        {label}
      </Button>
      <Button
        kind="danger"
        aria-label={text.of(text.remove, agent, when)}
        onClick={() => setIsDeleting(true)}
      >
        {text.remove}
      </Button>
      {change.error && <Failure error={change.error} />}
      {isDeleting && (
        <Confirm
          title={text.removeTitle}
          yes={text.removeYes}
          action={remove}
          onYes={() => remove.run()}
          onClose={() => setIsDeleting(false)}
        >
          <p>
            <Foreign text={agent} /> · <Foreign text={when} />
          </p>
          <p>{text.removeWhat}</p>
        </Confirm>
      )}
    </div>
  );
}
