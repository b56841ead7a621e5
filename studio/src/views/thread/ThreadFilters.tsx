import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";

import { assistantsQuery } from "../../api/queries.ts";
import { setQuery } from "../../app/location.ts";
import {
  type FilterFields,
  type FilterProblems,
  isFiltered,
  queryOf,
  SORTS,
  STATUSES,
  type ThreadSort,
} from "../../pure/thread_filter.ts";
import { thread } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";

const text = thread.list;

/** The filters of the list. Each change is a new address. */
export function ThreadFilters({ fields, problems }: { fields: FilterFields; problems: FilterProblems }) {
  const { data: assistants } = useQuery(assistantsQuery);
  const graphs = new Set(assistants?.map((assistant) => assistant.graph_id));
  if (fields.graph) graphs.add(fields.graph);
  const change = (changed: Partial<FilterFields>) => setQuery(queryOf({ ...fields, page: 1, ...changed }));
  return (
    <search className="thread-filters" aria-label={text.filters}>
      <Choice label={text.status} value={fields.status} onChange={(status) => change({ status })}>
        <option value="">{text.anyStatus}</option>
        {STATUSES.map((status) => (
          <option key={status} value={status}>
            {text.statuses[status]}
          </option>
        ))}
      </Choice>
      <Choice label={text.graph} value={fields.graph} onChange={(graph) => change({ graph })}>
        <option value="">{text.anyGraph}</option>
        {[...graphs].sort().map((graph) => (
          <option key={graph}>{graph}</option>
        ))}
      </Choice>
      <TextFilter
        label={text.metadata}
        hint={text.metadataHint}
        problem={problems.metadata && text.metadataWrong(problems.metadata)}
        value={fields.metadata}
        onChange={(metadata) => change({ metadata })}
      />
      <TextFilter
        label={text.ids}
        hint={text.idsHint}
        problem={problems.ids && text.idsWrong(problems.ids)}
        value={fields.ids}
        onChange={(ids) => change({ ids })}
      />
      <Choice label={text.sort} value={fields.sort} onChange={(sort) => change({ sort: sort as ThreadSort })}>
        {SORTS.map((sort) => (
          <option key={sort} value={sort}>
            {text.sorts[sort]}
          </option>
        ))}
      </Choice>
      {isFiltered(fields) && (
        <Button kind="quiet" onClick={() => change({ status: "", graph: "", metadata: "", ids: "" })}>
          {text.clear}
        </Button>
      )}
    </search>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  children: ReactNode;
}

function Choice({ label, value, onChange, children }: ChoiceProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        {children}
      </select>
    </div>
  );
}

interface TextFilterProps {
  label: string;
  hint: string;
  problem: string | undefined;
  value: string;
  onChange: (value: string) => void;
}

/** A text that becomes part of the address when the visitor stops typing. */
function TextFilter({ label, hint, problem, value, onChange }: TextFilterProps) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  // Another address, such as that of a link, wins over what was typed before.
  useEffect(() => setTyped((before) => (before.trim() === value ? before : value)), [value]);
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = setTimeout(() => latest.current(typed), 350);
    return () => clearTimeout(timer);
  }, [typed, value]);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        value={typed}
        placeholder={hint}
        aria-invalid={problem !== undefined}
        aria-describedby={problem ? `${id}-problem` : undefined}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && onChange(typed)}
      />
      {problem && (
        <span id={`${id}-problem`} className="field-problem" role="alert">
          {problem}
        </span>
      )}
    </div>
  );
}
