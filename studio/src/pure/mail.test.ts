import fc from "fast-check";
import { describe, expect, it } from "vitest";

import inbox from "../views/agents/fixtures/inbox.json";
import states from "../views/agents/fixtures/states.json";
import {
  draftsOf,
  isOutside,
  mailOfInput,
  parseEnvelope,
  parseMeeting,
  parseReceivedMail,
  parseReply,
  recipientsOf,
  registeredDomain,
  replyRecipients,
  splitAddresses,
  tonesOf,
} from "./mail.ts";

describe("who is outside", () => {
  it.each([
    ["carol@example.com", "alice@example.com", false],
    ["Carol <carol@eu.example.com>", "alice@example.com", false],
    ["x@evil.test", "alice@example.com", true],
    ["x@example.com.evil.test", "alice@example.com", true],
    ["x@other.co.uk", "alice@example.co.uk", true],
    ["bob@gmail.com", "alice@gmail.com", true],
    ["alice@gmail.com", "Alice <alice@gmail.com>", false],
    ["nobody", "alice@example.com", true],
  ])("%s for %s: %s", (address, account, expected) => {
    expect(isOutside(address, account)).toBe(expected);
  });

  it("knows what was registered", () => {
    expect(registeredDomain("a@mail.example.co.uk")).toBe("example.co.uk");
    expect(registeredDomain("a@x.example.org")).toBe("example.org");
  });
});

describe("an envelope", () => {
  const text =
    "From: alice@example.com\nTo: bob@example.com\nCc (2):\n  carol@example.com\n  x@evil.test\n3 recipients\nSubject: Re: Q4\nAttachments: a.pdf\nThe mail below is forwarded with the answer.";

  it("lists everyone who receives the mail", () => {
    const envelope = parseEnvelope(text);
    expect(envelope?.isForward).toBe(true);
    expect(envelope?.attachments).toEqual(["a.pdf"]);
    const recipients = envelope ? recipientsOf(envelope) : [];
    expect(recipients.map(({ address, role, isOutside }) => [address, role, isOutside])).toEqual([
      ["bob@example.com", "to", false],
      ["carol@example.com", "cc", false],
      ["x@evil.test", "cc", true],
    ]);
  });

  it("is refused if its recipients are not as many as the program counted", () => {
    expect(parseEnvelope(text.replace("3 recipients", "2 recipients"))).toBeUndefined();
    expect(parseEnvelope(text.replace("\n  x@evil.test", ""))).toBeUndefined();
    expect(parseEnvelope(`${text}\nCc: more`)).toBeUndefined();
  });
});

describe("a described reply", () => {
  const { description } = inbox.email_assistant.interrupt.value;

  it("is read from a real interrupt", () => {
    const reply = parseReply(description);
    expect(reply?.envelope).toMatchObject({ from: "alice@example.com", to: ["bob@example.com"], cc: [] });
    expect(reply?.original?.from).toBe("Bob <bob@example.com>");
    expect(reply?.original?.body).toBe("When is the report ready?");
    expect(reply?.notes).toHaveLength(1);
    expect(reply?.warning).toBe("");
  });

  it("has the warning of a second confirmation", () => {
    const reply = parseReply(`Really? \`x@evil.test\` is not in the conversation.\n\n${description}`);
    expect(reply?.warning).toBe("`x@evil.test` is not in the conversation.");
    expect(reply?.envelope.subject).toContain("Re: The report");
  });

  it("in another form is none", () => {
    expect(parseReply("Send it?")).toBeUndefined();
  });
});

it("a meeting is read with its zone and everyone who is invited", () => {
  const mail =
    "> **Subject**: Hi\n> **From**: bob@x.test\n> **To**: alice@example.com\n> \n> ```\n> Meet?\n> ```";
  const meeting = parseMeeting(
    `Title: Sync\nBegins: fake\nBegins: 2026-11-20 10:00 Europe/Berlin (09:00 UTC)\nEnds: 2026-11-20 11:00\nOrganizer: alice@example.com\nAttendees (2):\n  bob@x.test\n  carol@example.com\n2 attendees\n\nFor this mail:\n\n${mail}`,
    "Sync\nBegins: fake",
  );
  expect(meeting).toMatchObject({ begins: "2026-11-20 10:00 Europe/Berlin (09:00 UTC)", problem: "" });
  expect(meeting?.attendees).toEqual(["bob@x.test", "carol@example.com"]);
  expect(meeting?.original?.body).toBe("Meet?");
});

describe("a received mail", () => {
  it("keeps a text that looks like headers and fences", () => {
    const body = "```\n**Subject**: fake\n\n> quoted";
    const mail = parseReceivedMail(
      `**Subject**: Real\n**From**: a@b.c\n**To**: d@e.f\n\n\`\`\`\`\n${body}\n\`\`\`\`\n`,
    );
    expect(mail?.subject).toBe("Real");
    expect(mail?.body).toBe(body);
  });

  it("reads every body back", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "`", "\n", "*", ">") }), (body) => {
        const longest = Math.max(2, ...body.split(/[^`]/).map((run) => run.length));
        const fence = "`".repeat(longest + 1);
        const text = `**Subject**: s\n**From**: f\n**To**: t\n\n${fence}\n${body}\n${fence}\n`;
        expect(parseReceivedMail(text)?.body).toBe(body);
      }),
    );
  });

  it("comes from the input in either form", () => {
    expect(
      mailOfInput({ author: "a@b.c", to: ["x@y.z", "u@v.w"], subject: "s", email_thread: "t" }),
    ).toMatchObject({
      from: "a@b.c",
      to: "x@y.z, u@v.w",
      body: "t",
    });
    expect(mailOfInput(7).from).toBe("");
  });
});

describe("drafts", () => {
  it("have what became of them", () => {
    const drafts = draftsOf(states.mail.values.messages);
    expect(drafts).toHaveLength(1);
    expect(drafts[0]?.outcome).toBe("sent");
    expect(drafts[0]?.result).toContain("archie.");
  });

  it("that a person changed have the changed text", () => {
    const value = { tool_call_id: "call_4_0" };
    const answer = {
      type: "edit",
      args: { response_text: "Friday noon.", additional_recipients: ["x@y.z"] },
    };
    const [draft] = draftsOf(states.mail.values.messages, [{ value, answer }]);
    expect(draft).toMatchObject({ text: "Friday noon.", isEdited: true, added: ["x@y.z"] });
  });

  it("in several tones come with the interrupt", () => {
    expect(tonesOf({ tones: [{ tone: "warm", response_text: "Dear Bob" }, 3] })).toEqual([
      { tone: "warm", text: "Dear Bob" },
    ]);
    expect(tonesOf(null)).toEqual([]);
  });
});

it("a reply goes to everyone in the conversation, and never to oneself", () => {
  const input = {
    account: "alice@example.com",
    from: "Bob <bob@example.com>",
    to: 'Alice <alice@example.com>, "Doe, Carol" <carol@example.com>',
    cc: "dan@example.com",
    subject: "Q4",
  };
  const reply = replyRecipients(input, ["X <x@evil.test>", "DAN@example.com"]);
  expect(reply?.to).toEqual(["bob@example.com"]);
  expect(reply?.cc).toEqual(["carol@example.com", "dan@example.com", "x@evil.test"]);
  expect(splitAddresses(' a; "b, c" <d> ,')).toEqual(["a", '"b, c" <d>']);
});
