import { queryOptions, useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";

import { request } from "../../../api/client.ts";
import { stateQuery, threadQuery, treeQuery } from "../../../api/queries.ts";
import type { ForkPreview, ThreadState, TreeCheckpoint } from "../../../api/types.ts";
import { useMay } from "../../../app/me.ts";
import { checkpointIndex } from "../../../pure/branches.ts";
import { fork } from "../../../text/fork.ts";
import { Dialog } from "../../../ui/Dialog.tsx";
import { Failure, Loading } from "../../../ui/Notice.tsx";
import { useDraft } from "../../start/draft.ts";
import { assistantOf, type PaneProps } from "../pane.ts";
import { ChangeFields } from "./ChangeFields.tsx";
import { Effects, needsConfirmation } from "./Effects.tsx";
import { ForkActions } from "./ForkActions.tsx";
import type { ForkChange, ForkMode } from "./fork_actions.ts";
import "./fork.css";

export interface ForkDialogProps extends PaneProps {
  /** The checkpoint to fork at. */
  checkpoint: string;
  isOpen: boolean;
  onClose: () => void;
}

/** What happened after a checkpoint. A branch that still runs grows, so it is asked for again. */
const previewQuery = (thread: string, checkpoint: string) =>
  queryOptions({
    queryKey: ["fork-preview", thread, checkpoint],
    queryFn: ({ signal }) =>
      request<ForkPreview>(`/superstep/threads/${encodeURIComponent(thread)}/fork/preview`, {
        method: "POST",
        json: { checkpoint },
        signal,
      }),
    refetchInterval: 5_000,
  });

/** Starts a run from a checkpoint, after it said what would happen twice. */
export function ForkDialog(props: ForkDialogProps) {
  return (
    <Dialog title={fork.title} isOpen={props.isOpen} onClose={props.onClose}>
      <ForkForm key={props.checkpoint} {...props} />
    </Dialog>
  );
}

function ForkForm(props: ForkDialogProps) {
  const { thread, checkpoint } = props;
  const may = useMay();
  const state = useQuery(stateQuery(thread.thread_id, checkpoint));
  const preview = useQuery(previewQuery(thread.thread_id, checkpoint));
  const tree = useQuery(treeQuery(thread.thread_id));
  const at = tree.data && checkpointIndex(tree.data).get(checkpoint);
  if (!may("run")) return <p>{fork.noPermission}</p>;
  const error = state.error ?? preview.error ?? tree.error;
  if (error)
    return <Failure error={error} onRetry={() => void Promise.all([state.refetch(), preview.refetch()])} />;
  // The state of another checkpoint is a placeholder until this one is here.
  if (!at || !preview.data || state.data?.checkpoint_id !== checkpoint)
    return <Loading what={fork.loading} />;
  const isNewest = tree.data?.current === checkpoint;
  return <ForkFields {...props} at={at} state={state.data} preview={preview.data} isNewest={isNewest} />;
}

interface ForkFieldsProps extends ForkDialogProps {
  at: TreeCheckpoint;
  state: ThreadState;
  preview: ForkPreview;
  isNewest: boolean;
}

function ForkFields(props: ForkFieldsProps) {
  const { at, state, preview, isNewest } = props;
  // The caller's copy may be old: whether the thread is busy decides what can be done.
  const thread = useQuery(threadQuery(props.thread.thread_id)).data ?? props.thread;
  const draftKey = `fork:${thread.thread_id}:${at.checkpoint_id}`;
  const modes = modesOf(at, state, useMay());
  const [chosen, setMode] = useDraft<ForkMode>(`${draftKey}:mode`, modes[0] ?? "again");
  const mode = modes.includes(chosen) ? chosen : modes[0];
  const [entered, setEntered] = useState<ForkChange>();
  const [isCopy, setCopy] = useState(false);
  const onChange = useCallback((change: ForkChange | undefined) => setEntered(change), []);
  if (!mode) return <p>{fork.noMode}</p>;
  const change = mode === "again" ? ({ mode } as const) : entered?.mode === mode ? entered : undefined;
  const isOpen = isNewest && thread.status === "interrupted" && state.interrupts.length > 0;
  const repeats = !(mode === "answer" && isOpen && !isCopy);
  const isBusy = thread.status === "busy";
  const { assistant } = props;
  const plan = { thread: thread.thread_id, assistant, checkpoint: at.checkpoint_id, isCopy, isOpen };
  return (
    <div className="stack fork-form">
      <p className="muted">
        {fork.at(at.step)} ·{" "}
        {state.next.length > 0 ? <bdi>{fork.nextNodes(state.next)}</bdi> : fork.nothingNext}
      </p>
      <ModeChoice modes={modes} mode={mode} onChange={setMode} />
      <ChangeFields
        mode={mode}
        draftKey={draftKey}
        thread={thread.thread_id}
        graph={assistantOf(thread)?.graph ?? assistant}
        assistant={assistant}
        at={at}
        state={state}
        onChange={onChange}
      />
      {mode === "answer" && <p className="muted small">{repeats ? fork.answerLater : fork.nowOpen}</p>}
      <PlaceChoice isCopy={isCopy} onChange={setCopy} />
      {isBusy && !isCopy && <p role="status">{fork.busy}</p>}
      {repeats && <Effects preview={preview} change={change} />}
      <ForkActions
        plan={{ ...plan, interrupts: state.interrupts }}
        change={isBusy && !isCopy ? undefined : change}
        mustConfirm={repeats && needsConfirmation(preview)}
        draftKey={draftKey}
        onClose={props.onClose}
      />
    </div>
  );
}

/** What can be different at a checkpoint, as far as the visitor may. */
function modesOf(at: TreeCheckpoint, state: ThreadState, may: ReturnType<typeof useMay>): ForkMode[] {
  const hasNext = state.next.length > 0;
  const isInput = at.source === "input" || !hasNext;
  const modes: [ForkMode, boolean][] = [
    ["answer", state.interrupts.length > 0 && may("answer")],
    ["again", hasNext],
    ["input", isInput],
    ["state", at.source !== "input" && may("edit")],
    ["assistant", hasNext],
  ];
  return modes.filter(([, isPossible]) => isPossible).map(([mode]) => mode);
}

interface ModeChoiceProps {
  modes: ForkMode[];
  mode: ForkMode;
  onChange: (mode: ForkMode) => void;
}

function ModeChoice({ modes, mode, onChange }: ModeChoiceProps) {
  return (
    <fieldset className="fork-choices">
      <legend>{fork.mode}</legend>
      {modes.map((each) => (
        <label key={each}>
          <input type="radio" name="fork-mode" checked={each === mode} onChange={() => onChange(each)} />
          <span>
            {fork.modes[each]}
            <span className="muted small fork-hint">{fork.modeHints[each]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function PlaceChoice({ isCopy, onChange }: { isCopy: boolean; onChange: (isCopy: boolean) => void }) {
  return (
    <fieldset className="fork-choices">
      <legend>{fork.where}</legend>
      <label>
        <input type="radio" name="fork-place" checked={!isCopy} onChange={() => onChange(false)} />
        {fork.inPlace}
      </label>
      <label>
        <input type="radio" name="fork-place" checked={isCopy} onChange={() => onChange(true)} />
        {fork.newThread}
      </label>
    </fieldset>
  );
}
