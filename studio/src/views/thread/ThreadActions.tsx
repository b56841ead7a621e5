import { useQuery } from "@tanstack/react-query";
import { Suspense, useState } from "react";
import { cancelRun } from "../../api/actions.ts";
import { runsQuery } from "../../api/queries.ts";
import type { Thread } from "../../api/types.ts";
import { lazyView } from "../../app/lazy_view.ts";
import { hrefOf, navigate } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { text as common } from "../../text/index.ts";
import { thread as text } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { copyText } from "../../ui/clipboard.ts";
import { Dialog } from "../../ui/Dialog.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { deleteThread } from "./actions.ts";

const ForkDialog = lazyView(async () => ({ default: (await import("./fork/ForkDialog.tsx")).ForkDialog }));
const view = text.view;

interface ThreadActionsProps {
  thread: Thread;
  name: string;
  assistant: string | undefined;
  checkpoint: string | undefined;
}

/** What can be done with a thread. Whoever may not do it does not see it. */
export function ThreadActions({ thread, name, assistant, checkpoint }: ThreadActionsProps) {
  const may = useMay();
  const [dialog, setDialog] = useState<"fork" | "delete">();
  const close = () => setDialog(undefined);
  return (
    <div className="row thread-actions">
      {may("run") && thread.status === "busy" && <CancelRun thread={thread.thread_id} />}
      {may("run") && assistant && checkpoint && (
        <Button onClick={() => setDialog("fork")}>{view.fork}</Button>
      )}
      <CopyLink />
      {may("edit") && (
        <Button kind="danger" onClick={() => setDialog("delete")}>
          {view.remove}
        </Button>
      )}
      {dialog === "fork" && assistant && checkpoint && (
        <Suspense>
          <ForkDialog thread={thread} assistant={assistant} checkpoint={checkpoint} isOpen onClose={close} />
        </Suspense>
      )}
      {dialog === "delete" && <DeleteThread thread={thread.thread_id} name={name} onClose={close} />}
    </div>
  );
}

function CancelRun({ thread }: { thread: string }) {
  const { data: runs } = useQuery(runsQuery(thread));
  const [isAsked, setAsked] = useState(false);
  const [error, setError] = useState<unknown>();
  const active = runs?.filter((run) => run.status === "running" || run.status === "pending") ?? [];
  const cancel = async () => {
    setAsked(true);
    setError(undefined);
    try {
      for (const run of active) await cancelRun(thread, run.run_id);
    } catch (problem) {
      setError(problem);
    } finally {
      setAsked(false);
    }
  };
  return (
    <>
      <Button onClick={() => void cancel()} disabled={isAsked || active.length === 0}>
        {isAsked ? view.cancelling : view.cancel}
      </Button>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}

function CopyLink() {
  const [outcome, setOutcome] = useState("");
  const copy = async () => {
    setOutcome((await copyText(location.href)) ? view.linkCopied : view.copyFailed);
    setTimeout(() => setOutcome(""), 4000);
  };
  return (
    <>
      <Button onClick={() => void copy()}>{view.copyLink}</Button>
      <span className="small muted" role="status">
        {outcome}
      </span>
    </>
  );
}

function DeleteThread({ thread, name, onClose }: { thread: string; name: string; onClose: () => void }) {
  const [isAsked, setAsked] = useState(false);
  const [error, setError] = useState<unknown>();
  const remove = async () => {
    setAsked(true);
    try {
      await deleteThread(thread);
      navigate(hrefOf(["threads"]), "replace");
    } catch (problem) {
      setError(problem);
      setAsked(false);
    }
  };
  return (
    <Dialog title={view.removeTitle} isOpen onClose={onClose}>
      <p>{view.removeWhat(name)}</p>
      {error !== undefined && <Failure error={error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>{common.common.cancel}</Button>
        <Button kind="danger" disabled={isAsked} onClick={() => void remove()}>
          {view.removeConfirm}
        </Button>
      </div>
    </Dialog>
  );
}
