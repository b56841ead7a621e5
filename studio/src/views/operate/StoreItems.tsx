import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";

import { isObject, type Json, type JsonObject } from "../../api/json.ts";
import type { StoreItem } from "../../api/types.ts";
import { setQuery } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { common } from "../../text/common.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { Failure, Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { deleteItem, itemQuery, putItem, readItem, refreshOperate } from "./api.ts";
import { Foreign } from "./Foreign.tsx";
import { partsOf } from "./namespaces.ts";
import { Confirm, Facts, Fetched, OpenDialog, useAction } from "./parts.tsx";

const text = operate.store;
const closeItem = () => setQuery({ key: undefined, in: undefined });

/** The item that the address names. It is asked for only if the list does not have it. */
export function SelectedItem(props: { namespace: string; itemKey: string; known: readonly StoreItem[] }) {
  const { namespace, itemKey, known } = props;
  const listed = known.find((item) => item.key === itemKey && item.namespace.join(".") === namespace);
  const item = useQuery({ ...itemQuery(namespace, itemKey), enabled: !listed });
  if (listed) return <ItemCard item={listed} />;
  return (
    <Fetched query={item} what={text.itemTitle(itemKey)}>
      {(found) =>
        found ? (
          <ItemCard item={found} />
        ) : (
          <Notice title={text.gone}>
            <p>{text.goneNext}</p>
            <Button onClick={closeItem}>{text.close}</Button>
          </Notice>
        )
      }
    </Fetched>
  );
}

function ItemCard({ item }: { item: StoreItem }) {
  const may = useMay();
  const [open, setOpen] = useState<"edit" | "delete">();
  const headingId = useId();
  const close = () => setOpen(undefined);
  return (
    <section className="card stack" aria-labelledby={headingId}>
      <h3 id={headingId}>
        <Foreign text={item.key} />
      </h3>
      <Facts
        facts={[
          [text.namespace, <Foreign key="n" text={item.namespace.join(".")} isCode />],
          [text.changed, <Time key="u" at={item.updated_at} />],
          [text.created, <Time key="c" at={item.created_at} />],
        ]}
      />
      <JsonTree name={text.itemTitle(item.key)} value={item.value as Json} />
      <div className="row">
        {may("edit") && <Button onClick={() => setOpen("edit")}>{text.edit}</Button>}
        {may("edit") && (
          <Button kind="danger" onClick={() => setOpen("delete")}>
            {text.remove}
          </Button>
        )}
        <Button kind="quiet" onClick={closeItem}>
          {text.close}
        </Button>
      </div>
      {open === "edit" && <ItemDialog namespace={item.namespace} item={item} onClose={close} />}
      {open === "delete" && <DeleteItem item={item} onClose={close} />}
    </section>
  );
}

function DeleteItem({ item, onClose }: { item: StoreItem; onClose: () => void }) {
  const remove = useAction(
    () => deleteItem(item.namespace, item.key),
    () => {
      onClose();
      closeItem();
      void refreshOperate("store");
    },
  );
  return (
    <Confirm
      title={text.removeTitle}
      yes={text.removeYes}
      action={remove}
      onYes={() => remove.run()}
      onClose={onClose}
    >
      <p>
        <Foreign text={[...item.namespace, item.key].join(" › ")} />
      </p>
      <p>{text.removeWhat}</p>
    </Confirm>
  );
}

interface ItemDraft {
  namespace: string;
  key: string;
  json: string;
}

/** Edits an item, or creates one. What is typed is kept here: an item that changes meanwhile does not replace it. */
export function ItemDialog(props: { namespace: string[]; item?: StoreItem; onClose: () => void }) {
  const [item] = useState(props.item);
  const [draft, setDraft] = useState<ItemDraft>(() => ({
    namespace: props.namespace.join("."),
    key: item?.key ?? "",
    json: JSON.stringify(item?.value ?? {}, null, 2),
  }));
  const [problem, setProblem] = useState<string>();
  const [seen, setSeen] = useState(item?.updated_at);
  const [isChanged, setIsChanged] = useState(false);
  const save = useAction(async (value: JsonObject) => {
    const path = partsOf(draft.namespace);
    const now = item ? await readItem(draft.namespace, draft.key) : null;
    setIsChanged(false);
    if (now && now.updated_at !== seen) {
      setSeen(now.updated_at);
      setIsChanged(true);
      return;
    }
    await putItem(path, draft.key.trim(), value);
    void refreshOperate("store");
    props.onClose();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const checked = checkDraft(draft);
    setProblem(typeof checked === "string" ? checked : undefined);
    if (typeof checked !== "string") save.run(checked);
  };
  return (
    <OpenDialog title={item ? text.editTitle : text.createTitle} onClose={props.onClose}>
      <form className="stack" onSubmit={submit}>
        <ItemFields draft={draft} onChange={setDraft} isNew={!item} problem={problem} />
        {isChanged && (
          <Notice tone="warn" title={text.changedTitle}>
            <p>{text.changedNext}</p>
          </Notice>
        )}
        {save.error && <Failure error={save.error} />}
        <div className="dialog-actions">
          <Button onClick={props.onClose}>{common.cancel}</Button>
          <Button kind="primary" type="submit" disabled={save.isBusy}>
            {common.save}
          </Button>
        </div>
      </form>
    </OpenDialog>
  );
}

/** Returns the value, or what is wrong. */
function checkDraft(draft: ItemDraft): JsonObject | string {
  if (partsOf(draft.namespace).length === 0) return text.noNamespace;
  if (draft.key.trim() === "") return text.noKey;
  try {
    const value: unknown = JSON.parse(draft.json);
    return isObject(value) ? value : text.notObject;
  } catch (error) {
    return text.notJson(error instanceof Error ? error.message : String(error));
  }
}

function ItemFields(props: {
  draft: ItemDraft;
  onChange: (draft: ItemDraft) => void;
  isNew: boolean;
  problem: string | undefined;
}) {
  const { draft, onChange, isNew, problem } = props;
  const fieldId = useId();
  return (
    <>
      {isNew ? (
        (["namespace", "key"] as const).map((name) => (
          <div key={name} className="field">
            <label htmlFor={`${fieldId}-${name}`}>{text[name]}</label>
            <input
              id={`${fieldId}-${name}`}
              required
              value={draft[name]}
              onChange={(event) => onChange({ ...draft, [name]: event.target.value })}
            />
            {name === "namespace" && <p className="muted small">{text.beginHelp}</p>}
          </div>
        ))
      ) : (
        <p>
          <Foreign text={`${draft.namespace} › ${draft.key}`} />
        </p>
      )}
      <div className="field">
        <label htmlFor={`${fieldId}-json`}>{text.json}</label>
        <textarea
          id={`${fieldId}-json`}
          className="operate-json"
          spellCheck={false}
          value={draft.json}
          aria-invalid={problem !== undefined}
          aria-describedby={`${fieldId}-problem`}
          onChange={(event) => onChange({ ...draft, json: event.target.value })}
        />
        <p id={`${fieldId}-problem`} className="field-problem" role="alert">
          {problem}
        </p>
      </div>
    </>
  );
}
