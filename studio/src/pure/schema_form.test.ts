import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { Json } from "../api/json.ts";
import { isSame } from "./json_equal.ts";
import {
  fieldOf,
  initialValue,
  isBrokenJson,
  problemsOf,
  readAny,
  readNumber,
  resolved,
  type Schema,
  schemaOf,
  variantOf,
  writeAny,
} from "./schema_form.ts";

const codes = (schema: Schema, value: Json | undefined) =>
  problemsOf(schema, value).map(({ path, code }) => `${path}:${code}`);

describe("reading a schema", () => {
  test("references are followed, also through several definitions", () => {
    const root: Schema = { $defs: { "a/b": { $ref: "#/$defs/c" }, c: { type: "integer", title: "Age" } } };
    expect(resolved({ $ref: "#/$defs/a~1b", title: "Own" }, root)).toEqual({ type: "integer", title: "Own" });
  });

  test("a reference to itself, to nothing, or to another document ends", () => {
    const root: Schema = { $defs: { loop: { $ref: "#/$defs/loop" } } };
    expect(resolved({ $ref: "#/$defs/loop" }, root)).toEqual({});
    expect(resolved({ $ref: "#/$defs/none" }, root)).toEqual({});
    expect(resolved({ $ref: "https://example.com/schema" }, root)).toEqual({});
    expect(resolved({ $ref: "#/$defs/__proto__" }, root)).toEqual({});
  });

  test("allOf adds fields", () => {
    const schema = {
      properties: { a: {} },
      required: ["a"],
      allOf: [{ properties: { b: {} }, required: ["b"] }],
    };
    const read = resolved(schema, {});
    expect(Object.keys(read.properties as object)).toEqual(["a", "b"]);
    expect(read.required).toEqual(["a", "b"]);
  });

  test("every schema has a field", () => {
    const kind = (schema: Schema) => fieldOf(schema).kind;
    expect(kind({ type: "string" })).toBe("text");
    expect(kind({ type: ["string", "null"] })).toBe("variants");
    expect(kind({ type: ["integer"] })).toBe("number");
    expect(kind({ enum: [1, 2] })).toBe("choice");
    expect(kind({ const: "x" })).toBe("choice");
    expect(kind({ anyOf: [{ type: "string" }, { type: "null" }] })).toBe("variants");
    expect(kind({ anyOf: [{ type: "string" }] })).toBe("text");
    expect(kind({ type: "array" })).toBe("list");
    expect(kind({ properties: { a: {} } })).toBe("object");
    expect(kind({ type: "object" })).toBe("json");
    expect(kind({})).toBe("json");
  });

  test("constants with titles are choices", () => {
    const field = fieldOf({ oneOf: [{ const: "a", title: "First" }, { const: 2 }] });
    expect(field).toEqual({ kind: "choice", options: ["a", 2], titles: ["First", "2"] });
  });
});

describe("first values", () => {
  test("defaults and what is required, nothing else", () => {
    const schema: Schema = {
      type: "object",
      properties: {
        name: { type: "string" },
        size: { type: "integer", default: 3 },
        tags: { type: "array", items: {} },
        kind: { const: "x" },
        note: { anyOf: [{ type: "string" }, { type: "null" }] },
        extra: { type: "string" },
      },
      required: ["name", "tags", "kind", "note"],
    };
    expect(initialValue(schema, schema)).toEqual({ size: 3, tags: [], kind: "x", note: null });
  });

  test("a schema that contains itself ends", () => {
    const tree: Schema = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
    expect(JSON.stringify(initialValue(tree, tree)).length).toBeLessThan(1000);
    expect(() => problemsOf(tree, initialValue(tree, tree))).not.toThrow();
  });
});

describe("problems", () => {
  test("types", () => {
    expect(codes({ type: "number" }, "12")).toEqual([":number"]);
    expect(codes({ type: "integer" }, 1.5)).toEqual([":integer"]);
    expect(codes({ type: "boolean" }, "true")).toEqual([":boolean"]);
    expect(codes({ type: "null" }, 0)).toEqual([":null"]);
    expect(codes({ type: "array" }, {})).toEqual([":list"]);
    expect(codes({ type: "object" }, [])).toEqual([":object"]);
    expect(codes({}, "anything")).toEqual([]);
  });

  test("limits", () => {
    expect(problemsOf({ type: "string", minLength: 2 }, "a")).toEqual([
      { path: "", code: "minLength", limit: 2 },
    ]);
    expect(codes({ type: "string", minLength: 1 }, "")).toEqual([":required"]);
    expect(codes({ type: "string", maxLength: 1 }, "😀")).toEqual([]);
    expect(codes({ type: "number", minimum: 1, maximum: 3 }, 4)).toEqual([":maximum"]);
    expect(codes({ type: "number", exclusiveMinimum: 1 }, 1)).toEqual([":minimum"]);
    expect(codes({ type: "number", multipleOf: 0.1 }, 0.3)).toEqual([]);
    expect(codes({ type: "number", multipleOf: 0.1 }, 0.35)).toEqual([":multipleOf"]);
    expect(codes({ type: "array", minItems: 1 }, [])).toEqual([":minItems"]);
    expect(codes({ type: "string", format: "date-time" }, "soon")).toEqual([":dateTime"]);
  });

  test("objects: what is missing, what is wrong inside, what is not allowed", () => {
    const schema: Schema = {
      type: "object",
      properties: { "a/b": { type: "integer" }, list: { type: "array", items: { type: "string" } } },
      required: ["a/b"],
      additionalProperties: false,
    };
    expect(codes(schema, { list: ["x", 1], other: 1 })).toEqual([
      "/a~1b:required",
      "/list/1:text",
      "/other:unknown",
    ]);
    expect(codes(schema, { "a/b": 1 })).toEqual([]);
  });

  test("a value belongs to the variant with the fewest problems", () => {
    const cat = {
      type: "object",
      properties: { kind: { const: "cat" }, lives: { type: "integer" } },
      required: ["kind"],
    };
    const dog = { type: "object", properties: { kind: { const: "dog" } }, required: ["kind"] };
    expect(variantOf([cat, dog, { type: "null" }], { kind: "dog" }, {})).toBe(1);
    expect(variantOf([cat, dog, { type: "null" }], null, {})).toBe(2);
    expect(codes({ anyOf: [cat, { type: "null" }] }, { kind: "cat", lives: "9" })).toEqual([
      "/lives:integer",
    ]);
  });
});

describe("properties", () => {
  const json = fc.jsonValue().map((value) => value as Json);

  test("a value fits the schema that was made from it, so editing keeps its types", () => {
    fc.assert(
      fc.property(json, (value) => {
        const odd = problemsOf(schemaOf(value), value).filter(({ path }) => path.split("/").length < 10);
        expect(odd).toEqual([]);
      }),
    );
  });

  test("what is shown of anything is read as the same", () => {
    fc.assert(fc.property(json, (value) => isSame(readAny(writeAny(value)), value)));
    expect(readAny(writeAny("12"))).toBe("12");
    expect(readAny("12")).toBe(12);
    expect(readAny("twelve")).toBe("twelve");
  });

  test("no schema makes it fail", () => {
    fc.assert(
      fc.property(fc.object() as fc.Arbitrary<Schema>, json, (schema, value) => {
        problemsOf(schema, value);
        initialValue(schema, schema);
      }),
    );
  });
});

test("numbers as people type them", () => {
  expect(readNumber(" -1.50 ")).toBe(-1.5);
  expect(readNumber("1e3")).toBe(1000);
  for (const text of ["", "-", "1,5", "0x10", "Infinity", "1e999"]) expect(readNumber(text)).toBeUndefined();
});

test("text that was meant as JSON is recognized", () => {
  expect(isBrokenJson('{"a": 1')).toBe(true);
  expect(isBrokenJson("[1]")).toBe(false);
  expect(isBrokenJson("hello")).toBe(false);
});
