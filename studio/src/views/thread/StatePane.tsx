import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { isObject, type Json } from "../../api/json.ts";
import { labelsQuery, stateQuery, treeQuery } from "../../api/queries.ts";
import type { StateDiff } from "../../api/types.ts";
import { useMay } from "../../app/me.ts";
import { valueAt } from "../../pure/json_tree.ts";
import { changedPointers, labelsByPointer, openSubgraphs } from "../../pure/state_view.ts";
import { thread } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { ChangeList } from "../../ui/ChangeList.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { EditStateDialog } from "./EditStateDialog.tsx";
import { Declassified, LabelPath } from "./LabelPath.tsx";
import type { PaneProps } from "./pane.ts";
import { stepDiffQuery } from "./queries.ts";

const text = thread.state;

/** The state at the selected checkpoint, with what its step changed. */
export function StatePane({ thread, assistant, checkpoint }: PaneProps) {
  const id = thread.thread_id;
  const { data: tree } = useQuery(treeQuery(id));
  const shown = checkpoint ?? tree?.current ?? undefined;
  // By its id, the newest state is fetched once, however often the page asks whether there is a newer one.
  const {
    data: state,
    error,
    refetch,
  } = useQuery({ ...stateQuery(id, shown), enabled: shown !== undefined });
  const { data: diff } = useQuery(stepDiffQuery(id, shown));
  const [isEditing, setEditing] = useState(false);
  const may = useMay();
  if (tree?.current === null) return <NoState />;
  if (error && !state) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!state) return <Loading what={text.what} />;
  const values = state.values as Json;
  // While another checkpoint is fetched, the one before stays; its changes must not be those of another.
  const isCurrent = state.checkpoint_id === shown;
  return (
    <div className="stack state-pane" aria-busy={!isCurrent}>
      <StateBody
        thread={id}
        checkpoint={state.checkpoint_id ?? undefined}
        values={values}
        diff={isCurrent ? diff : undefined}
        canEdit={may("edit") && isObject(values)}
        onEdit={() => setEditing(true)}
      />
      {openSubgraphs(state).map((inner) => (
        <section key={inner.name} className="stack">
          <h3>
            <bdi>{text.subgraph(inner.name)}</bdi>
          </h3>
          <JsonTree name={text.subgraph(inner.name)} value={inner.values} />
        </section>
      ))}
      {isEditing && isObject(values) && (
        <EditStateDialog
          thread={id}
          assistant={assistant}
          values={values}
          checkpoint={checkpoint}
          isPast={checkpoint !== undefined && checkpoint !== tree?.current}
          onClose={() => setEditing(false)}
        />
      )}
    </div>
  );
}

function NoState() {
  return (
    <Notice title={text.emptyTitle}>
      <p>{text.emptyNext}</p>
    </Notice>
  );
}

interface StateBodyProps {
  thread: string;
  checkpoint: string | undefined;
  values: Json;
  diff: StateDiff | undefined;
  canEdit: boolean;
  onEdit: () => void;
}

const NO_CHANGES: StateDiff["changes"] = [];

function StateBody({ thread, checkpoint, values, diff, canEdit, onEdit }: StateBodyProps) {
  const [isList, setList] = useState(false);
  const { data: labels } = useQuery({
    ...labelsQuery(thread, checkpoint),
    enabled: checkpoint !== undefined,
  });
  const changes = diff?.changes ?? NO_CHANGES;
  const changed = useMemo(() => changedPointers(changes, values), [changes, values]);
  const marks = useMemo(
    () => labelsByPointer(labels, (at) => valueAt(values, at) !== undefined),
    [labels, values],
  );
  const removed = useMemo(() => changes.filter((change) => !("after" in change)), [changes]);
  return (
    <>
      <div className="row">
        <ViewChoice isList={isList} onChange={setList} />
        <span className="small muted">{diff && text.changes(changes.length)}</span>
        <span className="spacer" />
        {canEdit && <Button onClick={onEdit}>{text.edit}</Button>}
      </div>
      {isList ? (
        <ChangeList changes={changes} />
      ) : (
        <JsonTree
          name={text.name}
          value={values}
          changed={changed}
          labels={marks.labels}
          hasSearch
          details={(pointer) => (
            <LabelPath thread={thread} checkpoint={checkpoint} pointer={pointer} marks={marks} />
          )}
        />
      )}
      {!isList && removed.length > 0 && (
        <section className="stack">
          <h3>{text.removed(removed.length)}</h3>
          <ChangeList changes={removed} />
        </section>
      )}
      {labels && labels.declassified.length > 0 && <Declassified labels={labels} />}
    </>
  );
}

function ViewChoice({ isList, onChange }: { isList: boolean; onChange: (isList: boolean) => void }) {
  return (
    <fieldset className="choice">
      <legend className="visually-hidden">{text.showAs}</legend>
      {[false, true].map((each) => (
        <label key={String(each)}>
          <input type="radio" name="state-view" checked={isList === each} onChange={() => onChange(each)} />
          <span>{each ? text.asList : text.asTree}</span>
        </label>
      ))}
    </fieldset>
  );
}
