import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";

import type { Json, JsonObject } from "../../api/json.ts";
import { graphQuery } from "../../api/queries.ts";
import { setQuery } from "../../app/location.ts";
import { text as all } from "../../text/index.ts";
import { thread as texts } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { ChangeList } from "../../ui/ChangeList.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { updateState } from "./actions.ts";

const text = texts.edit;

interface EditStateDialogProps {
  thread: string;
  assistant: string;
  values: JsonObject;
  /** `undefined` for the newest. */
  checkpoint: string | undefined;
  isPast: boolean;
  onClose: () => void;
}

interface Edit {
  field: string;
  typed: string;
  node: string;
}

/** Edits one field of the state: first the value, then what is about to be written. What was typed stays until it is written. */
export function EditStateDialog(props: EditStateDialogProps) {
  // The state may change while somebody types: the edit is of the state that they saw.
  const [values] = useState(props.values);
  const [edit, setEdit] = useState<Edit>(() => {
    const [field = ""] = Object.keys(values);
    return { field, typed: pretty(values[field]), node: "" };
  });
  const [isReview, setReview] = useState(false);
  const parsed = parse(edit.typed);
  const title = isReview ? text.reviewTitle : text.title;
  return (
    <Dialog title={title} isOpen onClose={props.onClose}>
      {isReview && "value" in parsed ? (
        <Review {...props} values={values} edit={edit} value={parsed.value} onBack={() => setReview(false)} />
      ) : (
        <>
          <EditFields assistant={props.assistant} values={values} edit={edit} onChange={setEdit} />
          <p className="small muted">{text.reducer}</p>
          {props.isPast && <p className="small">{text.past}</p>}
          <div className="dialog-actions">
            <Button onClick={props.onClose}>{all.common.cancel}</Button>
            <Button kind="primary" disabled={!("value" in parsed)} onClick={() => setReview(true)}>
              {text.review}
            </Button>
          </div>
        </>
      )}
    </Dialog>
  );
}

function pretty(value: Json | undefined): string {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

function parse(typed: string): { value: Json } | { problem: string } {
  try {
    return { value: JSON.parse(typed) as Json };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

interface EditFieldsProps {
  assistant: string;
  values: JsonObject;
  edit: Edit;
  onChange: (edit: Edit) => void;
}

function EditFields({ assistant, values, edit, onChange }: EditFieldsProps) {
  const id = useId();
  const { data: graph } = useQuery(graphQuery(assistant));
  const nodes = (graph?.nodes ?? []).map((node) => String(node.id)).filter((node) => !/^__|[:]/.test(node));
  const parsed = parse(edit.typed);
  const problem = "problem" in parsed ? text.wrong(parsed.problem) : undefined;
  return (
    <>
      <div className="field">
        <label htmlFor={`${id}-field`}>{text.field}</label>
        <select
          id={`${id}-field`}
          value={edit.field}
          onChange={({ target }) =>
            onChange({ ...edit, field: target.value, typed: pretty(values[target.value]) })
          }
        >
          {Object.keys(values).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      <div className="field">
        <label htmlFor={`${id}-value`}>{text.value}</label>
        <textarea
          id={`${id}-value`}
          className="mono"
          rows={12}
          spellCheck={false}
          value={edit.typed}
          aria-invalid={problem !== undefined}
          aria-describedby={problem ? `${id}-problem` : undefined}
          onChange={(event) => onChange({ ...edit, typed: event.target.value })}
        />
        {problem && (
          <span id={`${id}-problem`} className="field-problem" role="status">
            {problem}
          </span>
        )}
      </div>
      <div className="field">
        <label htmlFor={`${id}-node`}>{text.node}</label>
        <select
          id={`${id}-node`}
          value={edit.node}
          aria-describedby={`${id}-hint`}
          onChange={(event) => onChange({ ...edit, node: event.target.value })}
        >
          <option value="">{text.nodeDefault}</option>
          {nodes.map((node) => (
            <option key={node}>{node}</option>
          ))}
        </select>
        <span id={`${id}-hint`} className="small muted">
          {text.nodeHint}
        </span>
      </div>
    </>
  );
}

interface ReviewProps extends EditStateDialogProps {
  edit: Edit;
  value: Json;
  onBack: () => void;
}

function Review({ thread, values, checkpoint, isPast, edit, value, onBack, onClose }: ReviewProps) {
  const [isAsked, setAsked] = useState(false);
  const [error, setError] = useState<unknown>();
  const before = values[edit.field];
  const isSame = JSON.stringify(before) === JSON.stringify(value);
  const path = `/${edit.field.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  const write = async () => {
    setAsked(true);
    setError(undefined);
    try {
      await updateState(thread, {
        values: { [edit.field]: value },
        checkpoint,
        node: edit.node || undefined,
      });
      // The edit is the newest checkpoint: show it.
      setQuery({ checkpoint: undefined });
      onClose();
    } catch (problem) {
      setError(problem);
      setAsked(false);
    }
  };
  return (
    <>
      {isSame ? (
        <p>{text.same}</p>
      ) : (
        <ChangeList changes={[{ path, after: value, ...(before !== undefined && { before }) }]} />
      )}
      {isPast && <p>{text.past}</p>}
      {error !== undefined && <Failure error={error} />}
      <div className="dialog-actions">
        <Button onClick={onBack}>{text.back}</Button>
        <Button kind="primary" disabled={isAsked} onClick={() => void write()}>
          {isAsked ? text.writing : text.write}
        </Button>
      </div>
    </>
  );
}
