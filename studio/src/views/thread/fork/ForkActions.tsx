import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { Link } from "../../../app/Link.tsx";
import { hrefOf, navigate } from "../../../app/location.ts";
import { common } from "../../../text/common.ts";
import { fork } from "../../../text/fork.ts";
import { Button } from "../../../ui/Button.tsx";
import { Failure, Notice } from "../../../ui/Notice.tsx";
import { forgetDraft } from "../../start/draft.ts";
import { AskedSomethingElse, type ForkChange, type ForkPlan, startFork } from "./fork_actions.ts";

interface ForkActionsProps {
  plan: Omit<ForkPlan, "change" | "onPhase">;
  /** `undefined` as long as something is missing. */
  change: ForkChange | undefined;
  mustConfirm: boolean;
  draftKey: string;
  onClose: () => void;
}

const DRAFTS = ["mode", "answers", "state", "input", "assistant"];

export function ForkActions({ plan, change, mustConfirm, draftKey, onClose }: ForkActionsProps) {
  const [isConfirmed, setConfirmed] = useState(false);
  const [phase, setPhase] = useState<string>(fork.starting);
  const starting = useMutation({
    mutationFn: (what: ForkChange) => startFork({ ...plan, change: what, onPhase: setPhase }),
    onSuccess: (thread) => {
      for (const name of DRAFTS) forgetDraft(`${draftKey}:${name}`);
      onClose();
      navigate(hrefOf(["threads", thread]));
    },
  });
  const { error, isPending } = starting;
  const isReady = change !== undefined && (!mustConfirm || isConfirmed) && !isPending;
  return (
    <>
      {mustConfirm && (
        <label className="fork-confirm">
          <input
            type="checkbox"
            checked={isConfirmed}
            onChange={(event) => setConfirmed(event.target.checked)}
          />
          {fork.confirm}
        </label>
      )}
      {error instanceof AskedSomethingElse ? <AskedElse error={error} /> : error && <Failure error={error} />}
      <p role="status" className="muted">
        {isPending && phase}
      </p>
      <div className="dialog-actions">
        <Button onClick={onClose}>{common.cancel}</Button>
        <Button kind="primary" disabled={!isReady} onClick={() => change && starting.mutate(change)}>
          {fork.start}
        </Button>
      </div>
    </>
  );
}

function AskedElse({ error }: { error: AskedSomethingElse }) {
  return (
    <div role="alert">
      <Notice tone="warn" title={error.message}>
        <Link href={hrefOf(["threads", error.thread])}>{fork.goToThread}</Link>
      </Notice>
    </div>
  );
}
