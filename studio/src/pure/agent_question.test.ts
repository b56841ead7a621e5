import fc from "fast-check";
import { describe, expect, it } from "vitest";

import inbox from "../views/agents/fixtures/inbox.json";
import { apiCallOf, cutText, questionOf, tableOf, visibleParts } from "./agent_question.ts";

describe("a question", () => {
  it("of each agent is the thing itself", () => {
    const types = Object.entries(inbox).map(([name, item]) => [name, questionOf(item).type]);
    expect(Object.fromEntries(types)).toEqual({
      analyze: "interview",
      email_assistant: "reply",
      sheet: "changes",
      docs: "gate",
      atris: "choice",
      notice: "notice",
      call: "call",
    });
  });

  it("about a suspicious mail has the reasons and the mail", () => {
    const notice = questionOf(inbox.notice);
    expect(notice).toMatchObject({ classification: "notify", mail: { id: "n1", cc: "dan@partner.test" } });
    expect(notice.type === "notice" && notice.suspicion).toHaveLength(5);
  });

  it("of another graph is an action with its arguments, a text or a value", () => {
    const of = (value: unknown) => questionOf({ graph_id: "other", kind: "", interrupt: { value } });
    expect(of("Publish?")).toEqual({ type: "value", text: "Publish?", value: undefined });
    expect(of({ question: "Publish?", draft: 1 })).toMatchObject({ text: "Publish?", value: { draft: 1 } });
    expect(of([1, 2])).toMatchObject({ type: "value", value: [1, 2] });
    expect(
      of({ action_request: { action: "refund", args: { cents: 9 } }, description: "Pay?" }),
    ).toMatchObject({
      type: "action",
      action: "refund",
      description: "Pay?",
    });
    expect(of({ action_requests: [{ name: "refund", args: {} }] })).toMatchObject({ action: "refund" });
  });

  it("with a mail in an unknown form stays an action, so that nothing is hidden", () => {
    const value = {
      action_request: { action: "send_email_tool", args: { response_text: "x" } },
      description: "?",
    };
    const item = { graph_id: "email_assistant", kind: "approval", interrupt: { value } };
    expect(questionOf(item)).toMatchObject({ type: "action", description: "?" });
  });

  it("never fails, whatever the value is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...Object.values(inbox)), (value, item) => {
        questionOf({ ...item, interrupt: { value } });
        questionOf({
          ...item,
          interrupt: { value: { action_request: value, ranges: value, questions: value } },
        });
      }),
    );
  });
});

describe("an API call", () => {
  const args = {
    method: "POST",
    url: "https://api.example.com/v1/pets?x=1",
    headers: { "x-trace": "7", "X-Api-Key": "hunter2" },
    body: { name: "Rex", tags: [] },
  };
  const description = [
    "This call changes something and has not been made:",
    "POST https://api.example.com/v1/pets?x=1",
    "x-trace: 7",
    "X-Api-Key: hunter2",
    "accept: application/json",
    "content-type: application/json",
    "idempotency-key: (of this call)",
    "authorization: Bearer (the secret in PETS_KEY)",
    "30 bytes of body:",
    JSON.stringify(args.body, null, 2),
    "",
    "The arguments were made from data labeled `untrusted`.",
  ].join("\n");

  it("is shown exactly, without secrets", () => {
    const call = apiCallOf(args, description);
    expect(call).toMatchObject({ method: "POST", url: args.url, body: args.body });
    expect(call.headers.map(({ name, value, isAdded }) => [name, value, isAdded])).toEqual([
      ["x-trace", "7", false],
      ["X-Api-Key", "", false],
      ["accept", "application/json", true],
      ["content-type", "application/json", true],
      ["idempotency-key", "(of this call)", true],
      ["authorization", "Bearer (the secret in PETS_KEY)", true],
    ]);
    expect(call.notes).toEqual(["The arguments were made from data labeled `untrusted`."]);
  });

  it("is read from a real interrupt", () => {
    const question = questionOf(inbox.call);
    expect(question).toMatchObject({ type: "call", call: { method: "DELETE", body: undefined, notes: [] } });
    const headers = question.type === "call" ? question.call.headers : [];
    expect(headers.map(({ name }) => name)).toEqual(["accept", "idempotency-key"]);
  });

  it("with a description in another form shows it as it is", () => {
    expect(apiCallOf(args, "Something else").notes).toEqual(["Something else"]);
  });
});

describe("text from outside", () => {
  it("shows what cannot be seen", () => {
    expect(visibleParts("a\u202eb\nc")).toEqual([
      { text: "a", isHidden: false },
      { text: "U+202E", isHidden: true },
      { text: "b\nc", isHidden: false },
    ]);
    expect(visibleParts("")).toEqual([]);
    expect(visibleParts("plain é 👍🏽").every(({ isHidden }) => !isHidden)).toBe(true);
  });

  it("is cut at lines and characters", () => {
    expect(cutText("a\nb\nc", 100, 2)).toBe("a\nb");
    expect(cutText("abcdef", 3, 9)).toBe("abc");
    fc.assert(fc.property(fc.string(), fc.nat(50), (text, max) => text.startsWith(cutText(text, max, 3))));
  });
});

describe("a result", () => {
  it("is a table if it is a list of objects", () => {
    const table = tableOf({
      data: [
        { id: 1, user: { name: "Ada" }, tags: [] },
        { id: 2, title: "x" },
      ],
    });
    expect(table?.columns).toEqual(["id", "user", "title"]);
    expect(table?.rows).toHaveLength(2);
    expect(tableOf({ orders: [{ id: 1001 }, { id: 1002 }], total: 2 })?.rows).toHaveLength(2);
    expect(tableOf({ data: { id: 3, tags: ["a"] } })?.columns).toEqual(["id"]);
    expect(tableOf({ id: 3 })?.rows).toEqual([{ id: 3 }]);
    expect(tableOf([1, 2])).toBeUndefined();
    expect(tableOf(null)).toBeUndefined();
  });
});
