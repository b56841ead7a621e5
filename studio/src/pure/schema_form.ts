/** Reads a JSON Schema as a form: which field stands for what, what it holds at first, and what is wrong with what it holds. */

import { isObject, type Json, type JsonObject } from "../api/json.ts";
import { isSame } from "./json_equal.ts";

export type Schema = JsonObject;

export interface NamedSchema {
  name: string;
  schema: Schema;
  isRequired: boolean;
}

export type FieldKind =
  | { kind: "text"; format: string | undefined; isLong: boolean }
  | { kind: "number"; isInteger: boolean }
  | { kind: "boolean" }
  | { kind: "null" }
  | { kind: "choice"; options: Json[]; titles: string[] }
  | { kind: "list"; items: Schema }
  | { kind: "object"; fields: NamedSchema[] }
  | { kind: "variants"; variants: Schema[] }
  /** What the form does not know is entered as JSON. */
  | { kind: "json" };

export type ProblemCode =
  | "required"
  | "unknown"
  | "text"
  | "number"
  | "integer"
  | "boolean"
  | "null"
  | "list"
  | "object"
  | "choice"
  | "variant"
  | "minLength"
  | "maxLength"
  | "minimum"
  | "maximum"
  | "multipleOf"
  | "minItems"
  | "maxItems"
  | "dateTime";

export interface FormProblem {
  /** A JSON Pointer. */
  path: string;
  code: ProblemCode;
  /** The limit that the value does not keep. */
  limit?: number;
}

/** A schema that refers to itself would otherwise be read forever. */
const REFS_MAX = 32;
const DEPTH_MAX = 12;

/** Follows references inside of the document, and merges what `allOf` adds. */
export function resolved(schema: unknown, root: Schema): Schema {
  let found = isObject(schema) ? schema : {};
  for (let refs = 0; typeof found.$ref === "string"; refs += 1) {
    const { $ref, ...rest } = found;
    const target = refs < REFS_MAX ? pointed(root, String($ref)) : undefined;
    found = isObject(target) ? { ...target, ...rest } : rest;
  }
  if (!Array.isArray(found.allOf)) return found;
  const { allOf, ...rest } = found;
  return (allOf as Json[]).reduce<Schema>((merged, part) => merge(merged, resolved(part, root)), rest);
}

function merge(one: Schema, other: Schema): Schema {
  const both = { ...other, ...one };
  if (isObject(one.properties) && isObject(other.properties)) {
    both.properties = { ...one.properties, ...other.properties };
  }
  if (Array.isArray(one.required) && Array.isArray(other.required)) {
    both.required = [...one.required, ...other.required];
  }
  return both;
}

function pointed(root: Json, ref: string): Json | undefined {
  if (!ref.startsWith("#")) return undefined;
  let found: Json | undefined = root;
  for (const part of ref.slice(1).split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}

/** Returns how a resolved schema is entered. */
export function fieldOf(schema: Schema): FieldKind {
  if (Array.isArray(schema.enum)) return choiceOf(schema.enum, []);
  if (schema.const !== undefined) return choiceOf([schema.const], []);
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) return unionOf(schema, union);
  if (Array.isArray(schema.type)) return typesOf(schema, schema.type);
  switch (schema.type) {
    case "string":
      return textField(schema);
    case "number":
    case "integer":
      return { kind: "number", isInteger: schema.type === "integer" };
    case "boolean":
      return { kind: "boolean" };
    case "null":
      return { kind: "null" };
    case "array":
      return { kind: "list", items: isObject(schema.items) ? schema.items : {} };
    case "object":
      return objectField(schema);
    default:
      return isObject(schema.properties) ? objectField(schema) : { kind: "json" };
  }
}

function unionOf(schema: Schema, union: Json[]): FieldKind {
  const {
    anyOf: _any,
    oneOf: _one,
    title: _title,
    description: _description,
    default: _default,
    ...rest
  } = schema;
  const variants = union.filter(isObject).map((variant) => merge(variant, rest));
  if (variants.length === 0) return { kind: "json" };
  if (variants.every((variant) => variant.const !== undefined)) {
    return choiceOf(
      variants.map((variant) => variant.const ?? null),
      variants.map((variant) => variant.title),
    );
  }
  const [only] = variants;
  return variants.length === 1 && only ? fieldOf(only) : { kind: "variants", variants };
}

function choiceOf(options: Json[], titles: (Json | undefined)[]): FieldKind {
  const shown = (option: Json) => (typeof option === "string" ? option : JSON.stringify(option));
  const named = options.map((option, at) => (typeof titles[at] === "string" ? titles[at] : shown(option)));
  return { kind: "choice", options, titles: named };
}

function typesOf(schema: Schema, types: Json[]): FieldKind {
  const [only] = types;
  if (types.length === 1 && only !== undefined) return fieldOf({ ...schema, type: only });
  const { title: _title, description: _description, default: _default, ...rest } = schema;
  return { kind: "variants", variants: types.map((type) => ({ ...rest, type })) };
}

function textField(schema: Schema): FieldKind {
  const format = typeof schema.format === "string" ? schema.format : undefined;
  const longest = typeof schema.maxLength === "number" ? schema.maxLength : 0;
  const isLong = format === "multiline" || schema["x-multiline"] === true || longest > 1000;
  return { kind: "text", format, isLong };
}

function objectField(schema: Schema): FieldKind {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const fields = Object.entries(properties).map(([name, field]) => ({
    name,
    schema: isObject(field) ? field : {},
    isRequired: isRequired(schema, name),
  }));
  return fields.length === 0 ? { kind: "json" } : { kind: "object", fields };
}

function isRequired(schema: Schema, name: string): boolean {
  return Array.isArray(schema.required) && schema.required.includes(name);
}

/** Returns what a form holds before anything is entered; `undefined` if there is nothing to assume. */
export function initialValue(schema: unknown, root: Schema, depth = 0): Json | undefined {
  const read = resolved(schema, root);
  if (read.default !== undefined) return read.default;
  const field = fieldOf(read);
  switch (field.kind) {
    case "choice":
      return field.options.length === 1 ? field.options[0] : undefined;
    case "null":
      return null;
    case "list":
      return depth === 0 ? [] : undefined;
    case "variants":
      return field.variants.some((variant) => resolved(variant, root).type === "null")
        ? null
        : initialValue(field.variants[0], root, depth + 1);
    case "object":
      return depth > DEPTH_MAX ? undefined : initialObject(field.fields, root, depth);
    default:
      return undefined;
  }
}

function initialObject(fields: NamedSchema[], root: Schema, depth: number): JsonObject {
  const value: JsonObject = {};
  for (const { name, schema, isRequired } of fields) {
    const read = resolved(schema, root);
    if (!isRequired && read.default === undefined) continue;
    const first = initialValue(read, root, depth + 1);
    if (first !== undefined) value[name] = first;
    else if (fieldOf(read).kind === "list") value[name] = [];
  }
  return value;
}

/** Returns what is wrong with a value, at most a hundred problems. */
export function problemsOf(schema: unknown, value: Json | undefined): FormProblem[] {
  const root = isObject(schema) ? schema : {};
  return check(resolved(root, root), value, { root, path: "", depth: 0 }).slice(0, 100);
}

/** Where a value is. */
interface Place {
  root: Schema;
  path: string;
  depth: number;
}

function below({ root, path, depth }: Place, name: string | number): Place {
  return { root, path: `${path}/${escaped(String(name))}`, depth: depth + 1 };
}

function check(schema: Schema, value: Json | undefined, place: Place): FormProblem[] {
  const { path } = place;
  if (value === undefined) return [{ path, code: "required" }];
  if (place.depth > DEPTH_MAX) return [];
  const need = (isGood: boolean, code: ProblemCode): FormProblem[] => (isGood ? [] : [{ path, code }]);
  const field = fieldOf(schema);
  switch (field.kind) {
    case "text":
      return checkText(schema, value, path);
    case "number":
      return checkNumber(schema, field.isInteger, value, path);
    case "boolean":
      return need(typeof value === "boolean", "boolean");
    case "null":
      return need(value === null, "null");
    case "choice":
      return need(
        field.options.some((option) => isSame(option, value)),
        "choice",
      );
    case "list":
      return checkList(schema, field.items, value, place);
    case "object":
      return checkObject(schema, field.fields, value, place);
    case "variants":
      return checkVariants(field.variants, value, place);
    case "json":
      return need(schema.type !== "object" || isObject(value), "object");
  }
}

function checkText(schema: Schema, value: Json, path: string): FormProblem[] {
  if (typeof value !== "string") return [{ path, code: "text" }];
  // As JSON Schema counts: characters, not units of UTF-16.
  const length = [...value].length;
  const { minLength, maxLength } = schema;
  if (typeof minLength === "number" && length < minLength) {
    return length === 0 ? [{ path, code: "required" }] : [{ path, code: "minLength", limit: minLength }];
  }
  if (typeof maxLength === "number" && length > maxLength)
    return [{ path, code: "maxLength", limit: maxLength }];
  const isTime = schema.format !== "date-time" || !Number.isNaN(Date.parse(value));
  return isTime ? [] : [{ path, code: "dateTime" }];
}

function checkNumber(schema: Schema, isInteger: boolean, value: Json, path: string): FormProblem[] {
  if (typeof value !== "number") return [{ path, code: isInteger ? "integer" : "number" }];
  if (isInteger && !Number.isInteger(value)) return [{ path, code: "integer" }];
  const problem = (
    code: ProblemCode,
    limit: Json | undefined,
    isBroken: (limit: number) => boolean,
  ): FormProblem[] => (typeof limit === "number" && isBroken(limit) ? [{ path, code, limit }] : []);
  return [
    ...problem("minimum", schema.minimum, (limit) => value < limit),
    ...problem("minimum", schema.exclusiveMinimum, (limit) => value <= limit),
    ...problem("maximum", schema.maximum, (limit) => value > limit),
    ...problem("maximum", schema.exclusiveMaximum, (limit) => value >= limit),
    ...problem("multipleOf", schema.multipleOf, (step) => step > 0 && !isWhole(value / step)),
  ];
}

/** Whether a quotient is a whole number, but for what is lost in a division. */
function isWhole(quotient: number): boolean {
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

function checkList(schema: Schema, items: Schema, value: Json, place: Place): FormProblem[] {
  const { path } = place;
  if (!Array.isArray(value)) return [{ path, code: "list" }];
  const { minItems, maxItems } = schema;
  const read = resolved(items, place.root);
  const found = value.flatMap((item, at) => check(read, item, below(place, at)));
  if (typeof minItems === "number" && value.length < minItems) {
    found.unshift({ path, code: "minItems", limit: minItems });
  }
  if (typeof maxItems === "number" && value.length > maxItems) {
    found.unshift({ path, code: "maxItems", limit: maxItems });
  }
  return found;
}

function checkObject(schema: Schema, fields: NamedSchema[], value: Json, place: Place): FormProblem[] {
  if (!isObject(value)) return [{ path: place.path, code: "object" }];
  const found = fields.flatMap(({ name, schema: field, isRequired }) => {
    const held = Object.hasOwn(value, name) ? value[name] : undefined;
    if (held === undefined && !isRequired) return [];
    return check(resolved(field, place.root), held, below(place, name));
  });
  if (schema.additionalProperties !== false) return found;
  const known = new Set(fields.map(({ name }) => name));
  const unknown = Object.keys(value).filter((name) => !known.has(name));
  return [...found, ...unknown.map((name) => ({ path: below(place, name).path, code: "unknown" as const }))];
}

function checkVariants(variants: Schema[], value: Json, place: Place): FormProblem[] {
  const variant = variants[variantOf(variants, value, place.root)];
  if (!variant) return [{ path: place.path, code: "variant" }];
  return check(resolved(variant, place.root), value, { ...place, depth: place.depth + 1 });
}

/** Returns the variant that a value belongs to: the one with the fewest problems. */
export function variantOf(variants: Schema[], value: Json | undefined, root: Schema): number {
  const problems = variants.map((variant) => {
    // Not deep: the variants of a variant may be many.
    const found = check(resolved(variant, root), value, { root, path: "", depth: DEPTH_MAX - 2 });
    // Another type is worse than any number of fields that are missing in it.
    return found.length + (found.some(({ path }) => path === "") ? 1000 : 0);
  });
  return Math.max(0, problems.indexOf(Math.min(...problems)));
}

/** Returns a schema that describes a value, so that what is edited keeps its types. */
export function schemaOf(value: Json): Schema {
  switch (typeof value) {
    case "string":
      return value.includes("\n") || value.length > 60
        ? { type: "string", format: "multiline" }
        : { type: "string" };
    case "number":
      return { type: "number" };
    case "boolean":
      return { type: "boolean" };
    default:
  }
  if (Array.isArray(value)) return listSchema(value);
  if (!isObject(value)) return {};
  const names = Object.keys(value);
  const fields = names.map((name) => [name, schemaOf(value[name] ?? null)] as const);
  return { type: "object", properties: Object.fromEntries(fields), required: names };
}

function listSchema(items: Json[]): Schema {
  const schemas = items.map(schemaOf);
  const [first, ...others] = schemas;
  if (!first) return { type: "array", items: {} };
  if (others.every((other) => isSame(other, first))) return { type: "array", items: first };
  const isText = schemas.every((schema) => schema.type === "string");
  return { type: "array", items: isText ? { type: "string", format: "multiline" } : {} };
}

/** Reads what somebody typed into a field for anything: JSON if it is, text otherwise. */
export function readAny(text: string): Json | undefined {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** Returns the text that `readAny` reads as the value. */
export function writeAny(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string" && readAny(value) === value) return value;
  return JSON.stringify(value, null, 2);
}

/** Whether a text was probably meant as JSON, and is none. */
export function isBrokenJson(text: string): boolean {
  return /^\s*[[{"]/.test(text) && typeof readAny(text) === "string" && readAny(text) === text;
}

/** Reads a number as people type it; `undefined` if it is none. */
export function readNumber(text: string): number | undefined {
  if (!/^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(text)) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** A name as a part of a JSON Pointer. */
export function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
