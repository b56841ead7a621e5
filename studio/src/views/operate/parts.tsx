/** Parts that the views for operators share. */

import { type UseQueryResult, useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useState } from "react";

import { Link } from "../../app/Link.tsx";
import { hrefOf, setQuery, usePageLocation } from "../../app/location.ts";
import { common } from "../../text/common.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import "./operate.css";

/** The frame of a view: its title, what it is about, and what can be done. */
export function Frame(props: { title: string; lead?: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <div className="view operate">
      <header>
        <h1>{props.title}</h1>
        {props.lead && <p className="muted operate-lead">{props.lead}</p>}
        {props.actions && <div className="row">{props.actions}</div>}
      </header>
      <div className="stack">{props.children}</div>
    </div>
  );
}

/** What was fetched. It stays on screen while the server is away. */
export function Fetched<T>(props: {
  query: UseQueryResult<T>;
  what: string;
  /** In place of a failure that is not one. */
  instead?: (error: Error) => ReactNode;
  children: (data: T) => ReactNode;
}) {
  const { query, what, instead, children } = props;
  if (query.data !== undefined) return children(query.data);
  if (!query.error) return <Loading what={what} />;
  return instead?.(query.error) ?? <Failure error={query.error} onRetry={() => void query.refetch()} />;
}

export function Filters({ children }: { children: ReactNode }) {
  return (
    <search className="operate-filters" aria-label={operate.filters}>
      {children}
    </search>
  );
}

/** A choice that is kept in the address. Another choice leads to the first page. */
export function SelectFilter(props: {
  name: string;
  label: string;
  options: readonly (readonly [value: string, label: string])[];
  /** The label of no choice; without it, the first option is the default. */
  all?: string;
}) {
  const { query } = usePageLocation();
  const fieldId = useId();
  const [first] = props.options;
  const value = query.get(props.name) ?? (props.all === undefined ? (first?.[0] ?? "") : "");
  return (
    <div className="field">
      <label htmlFor={fieldId}>{props.label}</label>
      <select
        id={fieldId}
        value={value}
        onChange={(event) => setQuery({ [props.name]: event.target.value || undefined, from: undefined })}
      >
        {props.all !== undefined && <option value="">{props.all}</option>}
        {props.options.map(([option, label]) => (
          <option key={option} value={option}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A text that is kept in the address, a moment after it was typed: browsers limit how often an address changes. */
export function TextFilter(props: { name: string; label: string; help?: string }) {
  const { name, label, help } = props;
  const { query } = usePageLocation();
  const inAddress = query.get(name) ?? "";
  const [typed, setTyped] = useState(inAddress);
  const [seen, setSeen] = useState(inAddress);
  if (seen !== inAddress) {
    setSeen(inAddress);
    if (typed.trim() !== inAddress) setTyped(inAddress);
  }
  const fieldId = useId();
  useEffect(() => {
    const value = typed.trim();
    if (value === inAddress) return;
    const timer = setTimeout(() => setQuery({ [name]: value || undefined, from: undefined }), 200);
    return () => clearTimeout(timer);
  }, [typed, inAddress, name]);
  return (
    <div className="field">
      <label htmlFor={fieldId}>{label}</label>
      <input
        id={fieldId}
        type="search"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        aria-describedby={help ? `${fieldId}-help` : undefined}
      />
      {help && (
        <p id={`${fieldId}-help`} className="muted small">
          {help}
        </p>
      )}
    </div>
  );
}

/** Nothing is left after filtering. */
export function NoMatch({ filters }: { filters: readonly string[] }) {
  const clear = Object.fromEntries([...filters, "from"].map((name) => [name, undefined]));
  return (
    <Notice title={operate.noMatchTitle}>
      <Button onClick={() => setQuery(clear)}>{operate.clearFilters}</Button>
    </Notice>
  );
}

/** Returns the number of rows before the page, which the address names. */
export function useOffset(): number {
  const from = Number(usePageLocation().query.get("from") ?? "0");
  return Number.isSafeInteger(from) && from > 0 ? from : 0;
}

export function Pager(props: {
  offset: number;
  shown: number;
  size: number;
  hasNext: boolean;
  total?: number | undefined;
}) {
  const { offset, shown, size, hasNext, total } = props;
  const { path, query } = usePageLocation();
  if (offset === 0 && !hasNext) return null;
  const at = (from: number) =>
    hrefOf(path, { ...Object.fromEntries(query), from: from > 0 ? String(from) : undefined });
  return (
    <nav className="row" aria-label={operate.pages}>
      {offset > 0 && (
        <Link className="button" href={at(Math.max(0, offset - size))}>
          {operate.previousPage}
        </Link>
      )}
      <span className="muted small">{operate.rows(offset + 1, offset + shown, total)}</span>
      {hasNext && (
        <Link className="button" href={at(offset + size)}>
          {operate.nextPage}
        </Link>
      )}
    </nav>
  );
}

export interface Action<Input> {
  run: (input: Input) => void;
  isBusy: boolean;
  error: Error | null;
  reset: () => void;
}

/** Something that the visitor makes the server do. */
export function useAction<Input = void, Output = void>(
  perform: (input: Input) => Promise<Output>,
  onDone?: (output: Output, input: Input) => void,
): Action<Input> {
  const mutation = useMutation({ mutationFn: perform, ...(onDone && { onSuccess: onDone }) });
  return { run: mutation.mutate, isBusy: mutation.isPending, error: mutation.error, reset: mutation.reset };
}

/** A dialog that is there as long as it is rendered, and returns the focus to where it was. */
export function OpenDialog(props: { title: string; onClose: () => void; children: ReactNode }) {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // After the dialog has left. What had the focus may be gone with the row that was deleted.
      const target = before?.isConnected ? before : document.getElementById("main");
      if (target instanceof HTMLElement) target.focus();
    },
    [before],
  );
  return (
    <Dialog title={props.title} isOpen onClose={props.onClose}>
      {props.children}
    </Dialog>
  );
}

/** Asks before something that cannot be undone. */
export function Confirm(props: {
  title: string;
  yes: string;
  no?: string;
  action: { isBusy: boolean; error: Error | null };
  onYes: () => void;
  onClose: () => void;
  children: ReactNode;
}) {
  return (
    <OpenDialog title={props.title} onClose={props.onClose}>
      {props.children}
      {props.action.error && <Failure error={props.action.error} />}
      <div className="dialog-actions">
        <Button onClick={props.onClose}>{props.no ?? common.cancel}</Button>
        <Button kind="danger" onClick={props.onYes} disabled={props.action.isBusy}>
          {props.action.isBusy ? operate.working : props.yes}
        </Button>
      </div>
    </OpenDialog>
  );
}

/** Facts with their names. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="operate-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt className="muted small">{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Commands to copy. */
export function Example({ text }: { text: string }) {
  return (
    <pre className="operate-example">
      <code>{text}</code>
    </pre>
  );
}
