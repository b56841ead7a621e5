import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  agentExample,
  agentInput,
  agentSchema,
  checkFiles,
  missingFields,
  readJson,
  settingsOf,
  startKind,
  uploadPaths,
} from "./input_form.ts";

describe("how an assistant is started", () => {
  it("follows its graph and its input", () => {
    const messages = { properties: { topic: {}, messages: { langgraph_type: "messages" } } };
    expect(startKind("sheet", {})).toEqual({ kind: "agent", agent: "sheet" });
    expect(startKind("support", messages)).toEqual({ kind: "chat", channel: "messages" });
    expect(startKind("other", { properties: { x: {} } })).toEqual({ kind: "schema" });
    expect(startKind("watch", { properties: {} })).toEqual({ kind: "closed" });
    expect(startKind("toString", null)).toEqual({ kind: "schema" });
  });
});

describe("the input of an agent", () => {
  it("names the uploaded files", () => {
    const notes = ["notes/a.md", "notes/deep/b.md", "c.md"];
    expect(agentInput("analyze", { question: "Why?" }, notes, "1")).toEqual({
      userInput: "analyze: Why?",
      noteFiles: ["notes", "c.md"],
    });
    expect(agentInput("sheet", { instruction: "Count", context: "" }, ["s.xlsx"], "1")).toEqual({
      task: { workbook: "s.xlsx", instruction: "Count" },
    });
    expect(agentInput("docs", { gate: false, agents: [] }, ["shop/a.rs"], "1")).toEqual({
      task: { folder: "shop", gate: false },
    });
  });

  it("is a mail for the mail assistant", () => {
    const value = { from: "b@x", to: "a@x", subject: "Hi", body: "Hello", cc: "" };
    expect(agentInput("email_assistant", value, [], "7")).toEqual({
      email_input: {
        id: "7",
        message_id: "7@studio",
        from: "b@x",
        to: "a@x",
        subject: "Hi",
        account: "a@x",
        page_content: "Hello",
      },
    });
  });

  it("is complete with the example, apart from a workbook", () => {
    for (const agent of ["analyze", "docs", "atris", "email_assistant"] as const) {
      const { value, files } = agentExample(agent);
      expect(
        missingFields(
          agent,
          value,
          files.map(({ path }) => path),
        ),
      ).toEqual([]);
    }
    expect(missingFields("sheet", agentExample("sheet").value, [])).toHaveLength(1);
    expect(missingFields("email_assistant", {}, [])).toHaveLength(3);
    expect(agentSchema("docs")).toHaveProperty("properties.gate");
  });
});

describe("chosen files", () => {
  const file = (path: string, bytes = 1) => ({ path, bytes });

  it("are those that the server accepts", () => {
    const chosen = [".git/config", "a.md", "a/../b", "x:y", "ok/ß.md", "big"].map((path) =>
      file(path, path === "big" ? 33 * 1024 * 1024 : 1),
    );
    const { accepted, refused } = checkFiles(chosen, "notes");
    expect(accepted.map(({ path }) => path)).toEqual(["a.md", "ok/ß.md"]);
    expect(refused.map(({ why }) => why)).toEqual(["hidden", "hidden", "name", "large"]);
  });

  it("are one workbook, the newest", () => {
    const { accepted, refused } = checkFiles([file("a.xlsx"), file("b.XLSX"), file("c.csv")], "workbook");
    expect(accepted.map(({ path }) => path)).toEqual(["b.XLSX"]);
    expect(refused.map(({ why }) => why)).toEqual(["one", "kind"]);
  });

  it("stay within the limits, and none is counted twice", () => {
    const sizes = fc.array(
      fc.record({ path: fc.constantFrom("a", "b", "c", "d"), bytes: fc.nat(200 * 1024 * 1024) }),
    );
    fc.assert(
      fc.property(sizes, (chosen) => {
        const { accepted } = checkFiles(chosen, "notes");
        const total = accepted.reduce((sum, { bytes }) => sum + bytes, 0);
        expect(total).toBeLessThanOrEqual(256 * 1024 * 1024);
        expect(new Set(accepted.map(({ path }) => path)).size).toBe(accepted.length);
      }),
    );
  });

  it("get a folder if they are to be one", () => {
    expect(uploadPaths(["a.rs", "b/c.rs"], "folder")).toEqual(["folder/a.rs", "folder/b/c.rs"]);
    expect(uploadPaths(["b/a.rs", "b/c.rs"], "folder")).toEqual(["b/a.rs", "b/c.rs"]);
    expect(uploadPaths(["a.rs"], "notes")).toEqual(["a.rs"]);
  });
});

describe("settings", () => {
  it("name what a run inherits from the version in use", () => {
    const version = { config: {}, context: { model: "small" } };
    const inUse = { config: {}, context: { model: "large", tone: "kind" } };
    expect(settingsOf(version, inUse)).toEqual({ ...version, inherited: ["tone"] });
  });

  it("are read as JSON", () => {
    expect(readJson(" ")).toEqual({ value: undefined });
    expect(readJson("{}")).toEqual({ value: {} });
    expect(readJson("{")).toHaveProperty("problem");
  });
});
