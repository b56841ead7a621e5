/** Mails and meetings as `email_assistant` asks about them. Whatever does not have the expected form is not guessed: the caller shows the text. */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";

/** Who gets a mail. */
export interface Recipient {
  address: string;
  role: "to" | "cc";
  /** Not of the organisation of the account that sends it. */
  isOutside: boolean;
  /** Has characters that can pass for others. */
  isOdd: boolean;
}

/** Sender, recipients and headers of a mail that is about to be sent. */
export interface Envelope {
  from: string;
  to: string[];
  cc: string[];
  subject: string;
  attachments: string[];
  isForward: boolean;
}

/** A mail that arrived, as text that a person would see. */
export interface ReceivedMail {
  subject: string;
  from: string;
  to: string;
  cc: string;
  date: string;
  id: string;
  attached: string;
  /** What was removed because a person would not have seen it. */
  leftOut: string;
  body: string;
}

/** What the description of a call says besides its subject. */
export interface DescribedCall {
  /** Why the call must be confirmed a second time; empty if it need not. */
  warning: string;
  original: ReceivedMail | undefined;
  /** Reasons and problems below the mail. */
  notes: string[];
}

export interface DescribedReply extends DescribedCall {
  envelope: Envelope;
}

export interface DescribedMeeting extends DescribedCall {
  title: string;
  begins: string;
  ends: string;
  /** Why it cannot be scheduled; empty if it can. */
  problem: string;
  organizer: string;
  attendees: string[];
}

/** Returns the bare address of `Ada <ada@example.org>`, in lower case. */
export function bareAddress(who: string): string {
  const begin = who.lastIndexOf("<");
  const end = who.lastIndexOf(">");
  return (begin >= 0 && begin < end ? who.slice(begin + 1, end) : who).trim().toLowerCase();
}

/** Splits a header into addresses, at commas and semicolons outside of quotes. */
export function splitAddresses(header: string): string[] {
  const found: string[] = [];
  let isQuoted = false;
  let one = "";
  for (const c of header) {
    if (c === '"') isQuoted = !isQuoted;
    if ((c === "," || c === ";") && !isQuoted) {
      found.push(one);
      one = "";
    } else one += c;
  }
  return [...found, one].map((each) => each.trim()).filter(Boolean);
}

const SECOND_LEVEL = new Set(["co", "com", "org", "net", "ac", "gov", "gouv", "edu"]);
const FREE_MAIL = new Set(
  "gmail googlemail outlook hotmail live yahoo icloud me aol gmx web proton protonmail mail yandex zoho".split(
    " ",
  ),
);

/** Returns the part of a domain that its owner registered, such as `example.co.uk`. */
export function registeredDomain(address: string): string {
  const domain = address.slice(address.lastIndexOf("@") + 1).replace(/[.>),]+$/, "");
  const labels = domain.split(".");
  const [top = "", second = ""] = labels.toReversed();
  return labels.slice(top.length === 2 && SECOND_LEVEL.has(second) ? -3 : -2).join(".");
}

/** Returns whether an address is outside of the organisation of an account. Everybody can have an address of a free provider, so an equal one proves nothing. */
export function isOutside(address: string, account: string): boolean {
  const [one, own] = [bareAddress(address), bareAddress(account)];
  if (one === own) return false;
  if (!one.includes("@") || !own.includes("@")) return true;
  const domain = registeredDomain(own);
  return registeredDomain(one) !== domain || FREE_MAIL.has(domain.split(".")[0] ?? "");
}

export function recipientsOf(envelope: Envelope): Recipient[] {
  const of = (role: Recipient["role"]) => (address: string) => ({
    address,
    role,
    isOutside: isOutside(address, envelope.from),
    isOdd: /[^\x21-\x7e]/.test(address),
  });
  return [...envelope.to.map(of("to")), ...envelope.cc.map(of("cc"))];
}

/** Reads lines one after the other. */
class Lines {
  readonly #lines: string[];
  #at = 0;

  constructor(text: string) {
    this.#lines = text.split("\n");
  }

  /** Takes the rest of the next line, if it begins so. */
  take(prefix: string): string | undefined {
    const line = this.#lines[this.#at];
    if (!line?.startsWith(prefix)) return undefined;
    this.#at++;
    return line.slice(prefix.length);
  }

  /** Takes `Name: entry`, or `Name (n):` and n lines. */
  list(name: string): string[] | undefined {
    const one = this.take(`${name}: `);
    if (one !== undefined) return [one];
    const head = /^(\d+):$/.exec(this.take(`${name} (`)?.replace("):", ":") ?? "");
    if (!head) return undefined;
    const entries: string[] = [];
    for (let count = Number(head[1]); count > 0; count--) {
      const entry = this.take("  ");
      if (entry === undefined) return undefined;
      entries.push(entry);
    }
    return entries;
  }

  /** Takes a count such as `1,240 recipients`. */
  count(noun: string): number | undefined {
    const found = new RegExp(`^([\\d,]+) ${noun}s?$`).exec(this.#lines[this.#at] ?? "");
    if (!found) return undefined;
    this.#at++;
    return Number(found[1]?.replaceAll(",", ""));
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#lines.length;
  }
}

/** Reads the envelope of a reply. The program counts the recipients itself, so a list that somebody else's text changed is not accepted. */
export function parseEnvelope(text: string): Envelope | undefined {
  const lines = new Lines(text);
  const from = lines.take("From: ");
  const to = lines.list("To");
  const cc = lines.list("Cc") ?? [];
  const count = lines.count("recipient");
  const subject = lines.take("Subject: ");
  const attachments = lines.list("Attachments") ?? [];
  const isForward = lines.take("The mail below is forwarded with the answer.") !== undefined;
  if (from === undefined || !to || subject === undefined || !lines.isAtEnd) return undefined;
  if (count !== to.length + cc.length) return undefined;
  return { from, to, cc, subject, attachments, isForward };
}

const HEAD = /^\*\*(Subject|From|To|Cc|ID|Attached|Left out)\*\*: (.*)$/;

/** Reads a mail as the agent writes it: headers, one on each line, and the text between fences. */
export function parseReceivedMail(text: string): ReceivedMail | undefined {
  const lines = text.replace(/\n+$/, "").split("\n");
  const blank = lines.indexOf("");
  const fence = lines[blank + 1] ?? "";
  if (blank < 1 || !/^`{3,}$/.test(fence) || lines.at(-1) !== fence || lines.length < blank + 3)
    return undefined;
  const heads = new Map<string, string>();
  for (const line of lines.slice(0, blank)) {
    const head = HEAD.exec(line);
    if (!head?.[1] || heads.has(head[1])) return undefined;
    heads.set(head[1], head[2] ?? "");
  }
  const field = (name: string) => heads.get(name) ?? "";
  return {
    subject: field("Subject"),
    from: field("From"),
    to: field("To"),
    cc: field("Cc"),
    date: "",
    id: field("ID"),
    attached: field("Attached"),
    leftOut: field("Left out"),
    body: lines.slice(blank + 2, -1).join("\n"),
  };
}

/** Splits a description into what is above the quoted mail, the mail, and what is below it. */
function parts(description: string, about: string): { above: string; call: DescribedCall } | undefined {
  const mark = `\n\n${about}\n\n> `;
  const at = description.indexOf(mark);
  if (at < 0) return undefined;
  let above = description.slice(0, at);
  let warning = "";
  if (above.startsWith("Really? ")) {
    const end = above.indexOf("\n\n");
    if (end < 0) return undefined;
    warning = above.slice("Really? ".length, end);
    above = above.slice(end + 2);
  }
  const lines = description.slice(at + mark.length - 2).split("\n");
  const quoted = lines.findIndex((line) => !line.startsWith(">"));
  const mail = lines.slice(0, quoted < 0 ? lines.length : quoted).map((line) => line.replace(/^> ?/, ""));
  const below = quoted < 0 ? "" : lines.slice(quoted).join("\n");
  const notes = below.split("\n\n").map((note) => note.trim());
  return {
    above,
    call: { warning, original: parseReceivedMail(mail.join("\n")), notes: notes.filter(Boolean) },
  };
}

/** Reads the description of `send_email_tool`. */
export function parseReply(description: string): DescribedReply | undefined {
  const found = parts(description, "Answers this mail:");
  const envelope = found && parseEnvelope(found.above);
  return found && envelope && { ...found.call, envelope };
}

/** Reads the description of `schedule_meeting_tool`. The title comes from its arguments: a model wrote it, line breaks included. */
export function parseMeeting(description: string, title: string): DescribedMeeting | undefined {
  const found = parts(description, "For this mail:");
  const head = `Title: ${title}\n`;
  if (!found?.above.startsWith(head)) return undefined;
  const lines = new Lines(found.above.slice(head.length));
  const begins = lines.take("Begins: ");
  const ends = lines.take("Ends: ");
  const problem = lines.take("This cannot be scheduled: ") ?? "";
  const organizer = lines.take("Organizer: ");
  const attendees = lines.list("Attendees");
  const count = lines.count("attendee");
  if (begins === undefined || ends === undefined || organizer === undefined) return undefined;
  if (!attendees || count !== attendees.length || !lines.isAtEnd) return undefined;
  return { ...found.call, title, begins, ends, problem, organizer, attendees };
}

/** Returns the mail of a thread, in Gmail's form or in that of a studio. */
export function mailOfInput(input: unknown): ReceivedMail {
  const first = (...names: string[]) => names.map((name) => textOf(input, name)).find(Boolean) ?? "";
  const list = (name: string) => {
    const value = isObject(input) ? input[name] : undefined;
    return Array.isArray(value) ? value.filter((item) => typeof item === "string").join(", ") : first(name);
  };
  return {
    subject: first("subject"),
    from: first("from", "author", "from_email"),
    to: list("to"),
    cc: list("cc"),
    date: first("send_time", "date"),
    id: first("id", "email_id"),
    attached: list("attachments"),
    leftOut: first("hidden"),
    body: first("page_content", "body", "email_thread", "text"),
  };
}

/** A draft of a reply, and what became of it. */
export interface Draft {
  id: string;
  text: string;
  /** Whom it adds to the conversation. */
  added: string[];
  outcome: "open" | "sent" | "refused";
  /** Whether a person changed it before it was sent. The text is the changed one. */
  isEdited: boolean;
  /** What the tool or the person said about it. */
  result: string;
}

const messagesOf = (messages: unknown): Json[] => (Array.isArray(messages) ? (messages as Json[]) : []);

/** What is read of an interrupt that was raised. */
export interface AnsweredInterrupt {
  value: unknown;
  answer: unknown;
}

/** Returns the arguments that a person put in place of those of a call, by the id of the call. The messages keep the model's. */
function editsOf(interrupts: readonly AnsweredInterrupt[]): Map<string, JsonObject> {
  const edits = new Map<string, JsonObject>();
  for (const { value, answer } of interrupts) {
    const id = textOf(value, "tool_call_id");
    if (!id || !isObject(answer) || answer.type !== "edit" || !isObject(answer.args)) continue;
    // Inboxes send the whole action back, other clients only its arguments.
    edits.set(id, isObject(answer.args.args) ? answer.args.args : answer.args);
  }
  return edits;
}

/** Returns every draft of a conversation, the oldest first. */
export function draftsOf(messages: unknown, interrupts: readonly AnsweredInterrupt[] = []): Draft[] {
  const edits = editsOf(interrupts);
  const results = new Map<string, Json>();
  for (const message of messagesOf(messages)) {
    const id = textOf(message, "tool_call_id");
    if (id) results.set(id, message);
  }
  const drafts: Draft[] = [];
  for (const message of messagesOf(messages)) {
    const calls = isObject(message) ? messagesOf(message.tool_calls) : [];
    for (const call of calls) {
      if (textOf(call, "name") !== "send_email_tool" || !isObject(call)) continue;
      const id = textOf(call, "id") ?? "";
      const result = textOf(results.get(id), "content") ?? "";
      const args = edits.get(id) ?? call.args;
      const added = isObject(args) ? args.additional_recipients : [];
      drafts.push({
        id,
        text: textOf(args, "response_text") ?? "",
        isEdited: edits.has(id),
        added: messagesOf(added).filter((who) => typeof who === "string"),
        outcome: !results.has(id) ? "open" : /^sent </.test(result) ? "sent" : "refused",
        result,
      });
    }
  }
  return drafts;
}

/** Drafts of one mail in several tones. */
export interface ToneDraft {
  tone: string;
  text: string;
}

/** Returns the drafts in other tones that an interrupt carries: `{"tones": [{"tone", "response_text"}]}`. */
export function tonesOf(value: unknown): ToneDraft[] {
  const tones = isObject(value) ? messagesOf(value.tones) : [];
  return tones.flatMap((each) => {
    const text = textOf(each, "response_text");
    return text === undefined ? [] : [{ tone: textOf(each, "tone") ?? "", text }];
  });
}

/** Everyone who receives the answer to a mail: who wrote it, and everybody who has a copy, without the account itself. */
export function replyRecipients(input: unknown, added: string[] = []): Envelope | undefined {
  const mail = mailOfInput(input);
  const to = splitAddresses(mail.to).map(bareAddress);
  const own = bareAddress(textOf(input, "account") ?? textOf(input, "to_email") ?? to[0] ?? "");
  const first = bareAddress(textOf(input, "reply_to")?.trim() || mail.from);
  if (!first) return undefined;
  const goesTo = (first === own ? to : [first]).filter((who) => who !== own);
  const known = new Set(goesTo);
  const others = [...to, ...splitAddresses(mail.cc).map(bareAddress), ...added.map(bareAddress)];
  const cc = others.filter((who) => who !== own && !known.has(who) && known.add(who));
  const subject = /^re: /i.test(mail.subject) ? mail.subject : `Re: ${mail.subject}`;
  return { from: own, to: goesTo, cc, subject, attachments: [], isForward: false };
}

/** Returns the messages of a thread: those of the innermost subgraph, which has more than the graph around it until it ends. */
export function conversationOf(state: { values?: unknown; tasks?: { state?: unknown }[] }): unknown {
  for (const task of state.tasks ?? []) {
    const inner = task.state;
    if (!isObject(inner)) continue;
    const found = conversationOf(inner as { values?: unknown; tasks?: { state?: unknown }[] });
    if (Array.isArray(found) && found.length > 0) return found;
  }
  return isObject(state.values) ? state.values.messages : undefined;
}
