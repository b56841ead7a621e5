import { createContext, type ReactNode, use, useMemo, useRef, useState } from "react";
import { isObject, type Json } from "../api/json.ts";
import { isSame } from "../pure/json_equal.ts";
import {
  escaped,
  type FieldKind,
  type FormProblem,
  fieldOf,
  initialValue,
  isBrokenJson,
  problemsOf,
  readAny,
  readNumber,
  resolved,
  type Schema,
  variantOf,
  writeAny,
} from "../pure/schema_form.ts";
import { visibleText } from "../pure/visible_text.ts";
import { inbox } from "../text/inbox.ts";
import { Button } from "./Button.tsx";
import "./schema_form.css";

const text = inbox.form;

export interface SchemaFormProps {
  /** A JSON Schema; what it does not describe is entered as JSON. */
  schema: unknown;
  /** `undefined` if nothing is entered yet. */
  value: Json | undefined;
  onChange: (value: Json) => void;
  /** Begins the ids of its fields. */
  idPrefix: string;
  isDisabled?: boolean;
  /** Shows all problems, also those of fields that were not entered yet. */
  showProblems?: boolean;
  /** The name of the field, if the schema is one field without a title. */
  name?: string;
}

interface FormContext {
  root: Schema;
  idPrefix: string;
  isDisabled: boolean;
  problemAt: (path: string) => FormProblem | undefined;
  touch: (path: string) => void;
}

const Form = createContext<FormContext | undefined>(undefined);

function useForm(): FormContext {
  const form = use(Form);
  if (!form) throw new Error("a field is outside of its form");
  return form;
}

/** A form made from a JSON Schema. It shows what is wrong with a field when the visitor has left it. */
export function SchemaForm(props: SchemaFormProps) {
  const { schema, value, onChange, idPrefix, isDisabled = false, showProblems = false } = props;
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const root = useMemo(() => (isObject(schema) ? schema : {}), [schema]);
  const problems = useMemo(
    () => new Map(problemsOf(root, value).map((problem) => [problem.path, problem])),
    [root, value],
  );
  const form: FormContext = {
    root,
    idPrefix,
    isDisabled,
    problemAt: (path) => (showProblems || touched.has(path) ? problems.get(path) : undefined),
    touch: (path) => setTouched((before) => (before.has(path) ? before : new Set(before).add(path))),
  };
  return (
    <Form value={form}>
      <div className="schema-form stack">
        <Field
          name={props.name ?? ""}
          schema={root}
          value={value}
          path=""
          isRequired
          depth={0}
          onChange={(changed) => onChange(changed ?? null)}
        />
      </div>
    </Form>
  );
}

interface FieldProps {
  name: string;
  schema: Schema;
  value: Json | undefined;
  path: string;
  isRequired: boolean;
  depth: number;
  /** `undefined` leaves the field out. */
  onChange: (value: Json | undefined) => void;
}

interface ReadFieldProps<K extends FieldKind["kind"] = FieldKind["kind"]> extends FieldProps {
  field: Extract<FieldKind, { kind: K }>;
  id: string;
  title: string;
  description: string | undefined;
}

/** Schemas that contain themselves end somewhere. */
const DEPTH_MAX = 8;
/** Longer lists are entered as JSON. */
const ITEMS_MAX = 100;

function Field(props: FieldProps) {
  const { root, idPrefix } = useForm();
  const schema = useMemo(() => resolved(props.schema, root), [props.schema, root]);
  const field = useMemo(() => fieldOf(schema), [schema]);
  const title = visibleText(
    typeof schema.title === "string" && schema.title !== "" ? schema.title : props.name,
  );
  const description = typeof schema.description === "string" ? visibleText(schema.description) : undefined;
  const read = { ...props, schema, id: `${idPrefix}${props.path}`, title: title || text.value, description };
  if (props.depth > DEPTH_MAX || isOtherShape(field, props.value)) {
    return <JsonField {...read} field={{ kind: "json" }} />;
  }
  switch (field.kind) {
    case "text":
      return <TextField {...read} field={field} />;
    case "number":
      return <NumberField {...read} field={field} />;
    case "boolean":
      return (
        <BooleanField
          {...read}
          field={{ kind: "choice", options: [true, false], titles: [text.yes, text.no] }}
        />
      );
    case "choice":
      return <ChoiceField {...read} field={field} />;
    case "list": {
      const options = setOptions(schema, field.items, props.value);
      return options ? <SetField {...read} field={options} /> : <ListField {...read} field={field} />;
    }
    case "object":
      return <ObjectField {...read} field={field} />;
    case "variants":
      return <VariantsField {...read} field={field} />;
    case "null":
      return <p className="muted small">{text.nullValue}</p>;
    case "json":
      return <JsonField {...read} field={field} />;
  }
}

/** Whether a value does not fit into the fields of its schema: then they would hide it. */
function isOtherShape(field: FieldKind, value: Json | undefined): boolean {
  if (value === undefined || value === null) return false;
  if (field.kind === "list") return !Array.isArray(value) || value.length > ITEMS_MAX;
  if (field.kind === "object") return !isObject(value);
  return field.kind === "text" && typeof value !== "string";
}

/** A name, a description, a problem, and what is entered between them. */
function Labelled(props: ReadFieldProps & { children: (described: Described) => ReactNode }) {
  const { id, title, description, path, isRequired } = props;
  const problem = useForm().problemAt(path);
  const ids = [description && `${id}-about`, problem && `${id}-problem`].filter(Boolean).join(" ");
  const described: Described = { id, "aria-invalid": problem !== undefined };
  if (ids) described["aria-describedby"] = ids;
  return (
    <div className="field">
      <label htmlFor={id}>
        <bdi>{title}</bdi> {!isRequired && <span className="muted">({text.optional})</span>}
      </label>
      {props.children(described)}
      <About {...props} />
    </div>
  );
}

interface Described {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby"?: string;
}

function About({ id, description, path }: ReadFieldProps) {
  const problem = useForm().problemAt(path);
  return (
    <>
      {description && (
        <p className="muted small schema-about" id={`${id}-about`}>
          <bdi>{description}</bdi>
        </p>
      )}
      {problem && (
        <p className="field-problem" id={`${id}-problem`}>
          {text.problem(problem)}
        </p>
      )}
    </>
  );
}

function TextField(props: ReadFieldProps<"text">) {
  const { field, value, path, isRequired, onChange } = props;
  const { isDisabled, touch } = useForm();
  const held = typeof value === "string" ? value : "";
  const change = (entered: string) => onChange(entered === "" && !isRequired ? undefined : entered);
  const rows = Math.min(14, Math.max(field.isLong ? 4 : 1, held.split("\n").length));
  return (
    <Labelled {...props}>
      {(described) =>
        field.format === "date-time" && isTime(held) ? (
          <input
            {...described}
            type="datetime-local"
            step={1}
            disabled={isDisabled}
            value={localTime(held)}
            onBlur={() => touch(path)}
            onChange={({ target }) => change(target.value === "" ? "" : new Date(target.value).toISOString())}
          />
        ) : (
          <textarea
            {...described}
            rows={rows}
            data-long={field.isLong}
            dir="auto"
            disabled={isDisabled}
            value={held}
            onBlur={() => touch(path)}
            onChange={({ target }) => change(target.value)}
          />
        )
      }
    </Labelled>
  );
}

function isTime(value: string): boolean {
  return value === "" || !Number.isNaN(Date.parse(value));
}

/** A time as the browser's field wants it: in the visitor's time zone. */
function localTime(value: string): string {
  const time = Date.parse(value);
  if (Number.isNaN(time)) return "";
  const offset = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - offset).toISOString().slice(0, 19);
}

/** What is typed stays as it is typed; the value is a number as soon as it is one, and the text until then. */
function NumberField(props: ReadFieldProps<"number">) {
  const { value, path, onChange } = props;
  const { isDisabled, touch } = useForm();
  const [typed, setTyped] = useState("");
  const read = (entered: string) => (entered.trim() === "" ? undefined : (readNumber(entered) ?? entered));
  const isTyped = typed !== "" && read(typed) === value;
  const shown = isTyped ? typed : value === undefined || value === null ? "" : String(value);
  return (
    <Labelled {...props}>
      {(described) => (
        <input
          {...described}
          inputMode="decimal"
          autoComplete="off"
          disabled={isDisabled}
          value={shown}
          onBlur={() => touch(path)}
          onChange={({ target }) => {
            setTyped(target.value);
            onChange(read(target.value));
          }}
        />
      )}
    </Labelled>
  );
}

/** Few values are shown at once, many in a list. */
function ChoiceField(props: ReadFieldProps<"choice">) {
  const { field, value, path, isRequired, onChange } = props;
  const { isDisabled, touch } = useForm();
  const at = field.options.findIndex((option) => isSame(option, value));
  if (field.options.length <= 6) return <BooleanField {...props} />;
  return (
    <Labelled {...props}>
      {(described) => (
        <select
          {...described}
          disabled={isDisabled}
          value={at}
          onBlur={() => touch(path)}
          onChange={({ target }) => onChange(field.options[Number(target.value)])}
        >
          <option value={-1} disabled={isRequired}>
            {text.choose}
          </option>
          {field.titles.map((title, option) => (
            <option key={option} value={option}>
              {visibleText(title)}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

function BooleanField(props: ReadFieldProps<"choice">) {
  const { field, value, id, title, isRequired, onChange } = props;
  const { isDisabled } = useForm();
  return (
    <fieldset className="field schema-choices" disabled={isDisabled}>
      <legend className="field-name">
        <bdi>{title}</bdi> {!isRequired && <span className="muted">({text.optional})</span>}
      </legend>
      {field.options.map((option, at) => (
        <label key={at} className="schema-choice">
          <input
            type="radio"
            name={id}
            checked={isSame(option, value)}
            onChange={() => onChange(option)}
            aria-describedby={props.description && `${id}-about`}
          />
          <bdi>{visibleText(field.titles[at] ?? "")}</bdi>
        </label>
      ))}
      <About {...props} />
    </fieldset>
  );
}

/** Returns the values to choose from, if a list has each of them at most once. */
function setOptions(schema: Schema, items: Schema, value: Json | undefined) {
  const field = schema.uniqueItems === true ? fieldOf(items) : undefined;
  if (field?.kind !== "choice") return undefined;
  const held = Array.isArray(value) ? value : [];
  // A value that is none of them must not be hidden.
  return held.every((item) => field.options.some((option) => isSame(option, item))) ? field : undefined;
}

function SetField(props: ReadFieldProps<"choice">) {
  const { field, value, path, isRequired, onChange } = props;
  const { isDisabled, touch } = useForm();
  const held = Array.isArray(value) ? value : [];
  const isHeld = (option: Json) => held.some((item) => isSame(item, option));
  const toggle = (option: Json) => {
    touch(path);
    const chosen = field.options.filter((each) => isHeld(each) !== isSame(each, option));
    onChange(chosen.length === 0 && !isRequired ? undefined : chosen);
  };
  return (
    <Group {...props}>
      <div className="schema-set">
        {field.options.map((option, at) => (
          <label key={at} className="schema-choice">
            <input
              type="checkbox"
              disabled={isDisabled}
              checked={isHeld(option)}
              onChange={() => toggle(option)}
            />
            <bdi>{visibleText(field.titles[at] ?? "")}</bdi>
          </label>
        ))}
      </div>
    </Group>
  );
}

function ListField(props: ReadFieldProps<"list">) {
  const { field, value, path, title, isRequired, depth, onChange } = props;
  const { root, isDisabled, touch } = useForm();
  const add = useRef<HTMLButtonElement>(null);
  const items = Array.isArray(value) ? value : [];
  const change = (changed: Json[]) => {
    touch(path);
    onChange(changed.length === 0 && !isRequired ? undefined : changed);
  };
  const remove = (at: number) => {
    change(items.filter((_, other) => other !== at));
    // The button that was pressed is gone.
    add.current?.focus();
  };
  const first = () => initialValue(field.items, root, 1) ?? emptyItem(resolved(field.items, root));
  return (
    <Group {...props}>
      {items.length === 0 && <p className="muted small">{text.empty}</p>}
      {items.map((item, at) => (
        <div key={at} className="schema-item">
          <Field
            name={text.item(title, at + 1)}
            schema={field.items}
            value={item}
            path={`${path}/${at}`}
            isRequired
            depth={depth + 1}
            onChange={(changed) =>
              change(items.map((old, other) => (other === at ? (changed ?? null) : old)))
            }
          />
          <Button
            kind="quiet"
            disabled={isDisabled}
            onClick={() => remove(at)}
            aria-label={text.remove(text.item(title, at + 1))}
          >
            {text.removeShort}
          </Button>
        </div>
      ))}
      <button
        ref={add}
        type="button"
        className="button schema-add"
        disabled={isDisabled}
        onClick={() => change([...items, first()])}
      >
        <bdi>{text.add(title)}</bdi>
      </button>
    </Group>
  );
}

/** What a new item holds: something of its type, because a list has no place for nothing. */
function emptyItem(schema: Schema): Json {
  const { kind } = fieldOf(schema);
  return kind === "object" ? {} : kind === "list" ? [] : kind === "text" || kind === "json" ? "" : null;
}

function Group(props: ReadFieldProps & { children: ReactNode }) {
  const { title, isRequired, depth, path } = props;
  if (depth === 0 && path === "" && props.name === "" && props.field.kind === "object")
    return <>{props.children}</>;
  return (
    <fieldset className="schema-group stack">
      <legend className="field-name">
        <bdi>{title}</bdi> {!isRequired && <span className="muted">({text.optional})</span>}
      </legend>
      {props.children}
      <About {...props} />
    </fieldset>
  );
}

function ObjectField(props: ReadFieldProps<"object">) {
  const { field, schema, value, path, title, isRequired, depth, onChange } = props;
  const { root, isDisabled } = useForm();
  if (!isObject(value) && !isRequired) {
    return (
      <Button
        className="schema-add"
        disabled={isDisabled}
        onClick={() => onChange(initialValue(schema, root) ?? {})}
      >
        <bdi>{text.set(title)}</bdi>
      </Button>
    );
  }
  const held = isObject(value) ? value : {};
  const change = (name: string, changed: Json | undefined) => {
    const { [name]: _, ...others } = held;
    // The order of the fields stays, so that only what was changed is a difference.
    if (changed === undefined) onChange(others);
    else onChange(name in held ? { ...held, [name]: changed } : { ...others, [name]: changed });
  };
  return (
    <Group {...props}>
      {field.fields.map(({ name, schema: part, isRequired: isPartRequired }) => (
        <Field
          key={name}
          name={name}
          schema={part}
          value={Object.hasOwn(held, name) ? held[name] : undefined}
          path={`${path}/${escaped(name)}`}
          isRequired={isPartRequired}
          depth={depth + 1}
          onChange={(changed) => change(name, changed)}
        />
      ))}
      {!isRequired && (
        <Button kind="quiet" className="schema-add" disabled={isDisabled} onClick={() => onChange(undefined)}>
          <bdi>{text.unset(title)}</bdi>
        </Button>
      )}
    </Group>
  );
}

/** One of several schemas. The visitor's choice counts, as long as the value may be of it. */
function VariantsField(props: ReadFieldProps<"variants">) {
  const { field, value, id, title, depth, onChange } = props;
  const { root, isDisabled } = useForm();
  const [picked, setPicked] = useState<number>();
  const at = picked ?? variantOf(field.variants, value, root);
  const variants = useMemo(() => field.variants.map((variant) => resolved(variant, root)), [field, root]);
  const variant = variants[at] ?? {};
  const pick = (next: number) => {
    setPicked(next);
    onChange(initialValue(variants[next], root) ?? (variants[next]?.type === "string" ? "" : undefined));
  };
  return (
    <div className="stack schema-variants">
      <div className="field">
        <label htmlFor={`${id}-kind`}>
          <bdi>{text.variant(title)}</bdi>
        </label>
        <select
          id={`${id}-kind`}
          disabled={isDisabled}
          value={at}
          onChange={({ target }) => pick(Number(target.value))}
        >
          {variants.map((each, option) => (
            <option key={option} value={option}>
              {variantTitle(each)}
            </option>
          ))}
        </select>
      </div>
      <Field {...props} key={at} name={title} schema={variant} depth={depth + 1} />
    </div>
  );
}

function variantTitle(schema: Schema): string {
  if (typeof schema.title === "string") return visibleText(schema.title);
  const type = typeof schema.type === "string" ? schema.type : "any";
  return text.variants[type] ?? type;
}

/** Anything. Text that is not JSON is text, so that nobody has to know about quotes. */
function JsonField(props: ReadFieldProps<"json">) {
  const { value, path, onChange } = props;
  const { isDisabled, touch } = useForm();
  const [typed, setTyped] = useState("");
  const isTyped = typed !== "" && isSame(readAny(typed), value);
  const shown = isTyped ? typed : writeAny(value);
  const isBroken = isBrokenJson(shown);
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const mark = (element: HTMLTextAreaElement | null) =>
    element?.setCustomValidity(isBroken ? text.broken : "");
  return (
    <Labelled {...props}>
      {(described) => (
        <>
          <textarea
            {...described}
            ref={mark}
            className="mono"
            rows={Math.min(16, Math.max(1, shown.split("\n").length))}
            spellCheck={false}
            disabled={isDisabled}
            value={shown}
            aria-invalid={isBroken || described["aria-invalid"]}
            onBlur={() => touch(path)}
            onChange={({ target }) => {
              setTyped(target.value);
              onChange(readAny(target.value));
            }}
          />
          <p className={isBroken ? "field-problem" : "muted small"}>
            {isBroken ? text.broken : value === undefined ? text.json : text.readAs(text.types[type] ?? type)}
          </p>
        </>
      )}
    </Labelled>
  );
}
