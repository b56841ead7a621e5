import type { Json } from "../../../api/json.ts";
import type { ThreadState, TreeCheckpoint } from "../../../api/types.ts";
import { AnswerFields } from "./AnswerFields.tsx";
import { AssistantFields } from "./AssistantFields.tsx";
import type { ForkChange, ForkMode } from "./fork_actions.ts";
import { InputFields } from "./InputFields.tsx";
import { StateFields } from "./StateFields.tsx";

interface ChangeFieldsProps {
  mode: ForkMode;
  draftKey: string;
  thread: string;
  graph: string;
  assistant: string;
  at: TreeCheckpoint;
  state: ThreadState;
  onChange: (change: ForkChange | undefined) => void;
}

/** The fields of what is different; none for the same again. */
export function ChangeFields({ mode, thread, graph, at, state, ...shared }: ChangeFieldsProps) {
  const { draftKey, assistant, onChange } = shared;
  switch (mode) {
    case "again":
      return null;
    case "answer":
      return <AnswerFields {...{ draftKey, thread, graph, onChange }} interrupts={state.interrupts} />;
    case "state":
      return <StateFields {...shared} values={state.values as Json} />;
    case "input":
      return <InputFields {...shared} thread={thread} checkpoint={at} />;
    case "assistant":
      return <AssistantFields draftKey={draftKey} graph={graph} assistant={assistant} onChange={onChange} />;
  }
}
