import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  activityOf,
  fieldsOf,
  filterOf,
  formatCompare,
  isFiltered,
  PAGE_LENGTH,
  parseCompare,
  parseMetadata,
  queryOf,
  SORTS,
  STATUSES,
} from "./thread_filter.ts";

const ID = "01a1ed34-f9c5-717e-806c-65d718bd65a4";

describe("addresses", () => {
  it("keep a filter", () => {
    const text = fc.string().map((each) => each.trim());
    const fields = fc.record({
      status: fc.constantFrom("", ...STATUSES),
      graph: fc.string(),
      metadata: text,
      ids: text,
      sort: fc.constantFrom(...SORTS),
      page: fc.integer({ min: 1, max: 9999 }),
    });
    fc.assert(
      fc.property(fields, (filter) => {
        const params = new URLSearchParams();
        for (const [name, value] of Object.entries(queryOf(filter))) if (value) params.set(name, value);
        expect(fieldsOf(new URLSearchParams(params.toString()))).toEqual(filter);
      }),
    );
  });

  it("may be nonsense", () => {
    const fields = fieldsOf(new URLSearchParams("status=x&sort=y&page=-3"));
    expect(fields).toMatchObject({ status: "", sort: "updated_at", page: 1 });
    expect(isFiltered(fields)).toBe(false);
  });
});

describe("filters", () => {
  const fields = fieldsOf(new URLSearchParams(`status=idle&graph=mail&metadata=user=anna&ids=${ID}&page=2`));

  it("are what the server is asked for", () => {
    expect(filterOf(fields)).toEqual({
      filter: {
        status: "idle",
        graph: "mail",
        metadata: { user: "anna" },
        ids: [ID],
        limit: PAGE_LENGTH,
        offset: PAGE_LENGTH,
      },
      problems: {},
    });
  });

  it("name what is not valid", () => {
    const { filter, problems } = filterOf({ ...fields, ids: `${ID}, 12`, metadata: "anna" });
    expect(problems).toEqual({ ids: "12", metadata: "anna" });
    expect(filter.ids).toBeUndefined();
  });

  it("read metadata with types", () => {
    expect(parseMetadata('user=anna, tier=3, ok=true, note="a, b", id=3a, empty=')).toEqual({
      user: "anna",
      tier: 3,
      ok: true,
      note: "a, b",
      id: "3a",
      empty: "",
    });
    expect(parseMetadata(" , ")).toBeUndefined();
    expect(parseMetadata("a=1, =2")).toBe("=2");
    expect(parseMetadata('a="b')).toEqual({ a: '"b' });
  });

  it("read any text", () => {
    fc.assert(fc.property(fc.string(), (text) => void parseMetadata(text)));
  });
});

it("says what a thread does", () => {
  const metadata = { graph_id: "mail" } as never;
  const open = { task: [{ id: "1", value: null }] };
  expect(activityOf({ status: "idle", metadata })).toBe("finished");
  expect(activityOf({ status: "idle", metadata: {} as never })).toBe("new");
  expect(activityOf({ status: "busy", metadata })).toBe("running");
  expect(activityOf({ status: "interrupted", metadata, interrupts: open })).toBe("waiting");
  expect(activityOf({ status: "interrupted", metadata })).toBe("paused");
  expect(activityOf({ status: "error", metadata })).toBe("failed");
});

it("reads what to compare with", () => {
  expect(parseCompare("c1")).toEqual({ thread: undefined, checkpoint: "c1" });
  expect(parseCompare(`${ID}:c1`)).toEqual({ thread: ID, checkpoint: "c1" });
  expect(parseCompare(`${ID}:`)).toEqual({ thread: ID, checkpoint: undefined });
  expect(parseCompare("")).toBeUndefined();
  expect(parseCompare("a:b:c")).toBeUndefined();
  for (const text of ["c1", "t:c", "t:"]) expect(formatCompare(parseCompare(text) ?? fail())).toBe(text);
});

function fail(): never {
  throw new Error("not read");
}
