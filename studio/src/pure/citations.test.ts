import fc from "fast-check";
import { describe, expect, it } from "vitest";

import states from "../views/agents/fixtures/states.json";
import { analysisOf, excerptOf, relatedLines, splitAtQuote } from "./citations.ts";

const analysis = analysisOf(states.analyze.values);

describe("an analysis", () => {
  it("is read from a real state", () => {
    expect(analysis.query).toBe("Choose a queue for orders t30x");
    expect(analysis.turns.map(({ role }) => role)).toEqual(["user", "agent", "user", "agent", "user"]);
    const cited = analysis.claims.filter(({ source }) => source);
    expect(cited).toHaveLength(1);
    expect(cited[0]).toMatchObject({ section: "components", verdict: "supported" });
    expect(analysis.claims.filter(({ verdict }) => verdict === "said")).toHaveLength(4);
  });

  it("says what the check found", () => {
    const verdict = (support: string, evidence?: string) =>
      analysisOf({ findings: [{ section: "decisions", claim: "c", support, evidence }] }).claims[0]?.verdict;
    expect(verdict("quoted", "weak")).toBe("weak");
    expect(verdict("moved", "unsupported")).toBe("unsupported");
    expect(verdict("quoted")).toBe("supported");
    expect(verdict("unsupported", "unsupported")).toBe("misquoted");
    expect(verdict("of a later version")).toBe("misquoted");
  });

  it("of a state that is none is empty", () => {
    expect(analysisOf(undefined).claims).toEqual([]);
    expect(
      analysisOf({ gaps: { components: { missing: { why: "not JSON" } }, questions: "cut" } }).gaps,
    ).toEqual(
      new Map([
        ["components", "not JSON"],
        ["questions", ""],
      ]),
    );
  });
});

describe("evidence", () => {
  it("is the cited line with its neighbours", () => {
    expect(excerptOf(analysis.notes, "notes/b.txt", 1)?.lines).toEqual([
      { number: 1, text: "We have one machine.", isCited: true },
      { number: 2, text: "Nobody is on call at night.", isCited: false },
    ]);
    expect(excerptOf(analysis.notes, "notes/b.txt", 9)).toBeUndefined();
    expect(excerptOf(analysis.notes, "nope", 1)).toBeUndefined();
  });

  it("marks the quotation in its line", () => {
    expect(splitAtQuote("We have  one machine.", "have one Machine")).toEqual([
      "We ",
      "have  one machine",
      ".",
    ]);
    fc.assert(
      fc.property(fc.string(), fc.string(), (line, quote) => splitAtQuote(line, quote).join("") === line),
    );
  });

  it("of a question is what it cites, then what shares its words", () => {
    const question = 'You take ten thousand orders t30x a day, and "nobody is on call at night". Who pays?';
    expect(relatedLines(question, analysis.notes).map(({ file, line, how }) => [file, line, how])).toEqual([
      ["notes/b.txt", 2, "cited"],
      ["notes/a.md", 1, "similar"],
    ]);
    expect(relatedLines("See notes/a.md:2.", analysis.notes)).toMatchObject([{ line: 2, how: "cited" }]);
    expect(relatedLines("Why?", analysis.notes)).toEqual([]);
  });
});
