/** A server full of hostile texts, and what must not come of them on the page. */

import type { Page } from "playwright-core";

import type { Json, JsonObject } from "../src/api/json.ts";
import type { Assistant, Cron, Thread } from "../src/api/types.ts";
import { begin, Lab } from "./lab.ts";
import { PAYLOADS, type Payload } from "./payloads.ts";

/** Where the hostile texts are, by the names of what has them. */
export interface HostileData {
  /** A thread of each agent. */
  agents: string[];
  mails: string[];
  /** A thread with hostile files. */
  full: string;
  assistants: string[];
  crons: string[];
}

export async function startHostileLab(): Promise<Lab> {
  const replies = mailsOf().flatMap(mailReplies);
  return await Lab.start({ tags: ["calm"], replies, args: ["--audit"] });
}

type Five = [Payload, Payload, Payload, Payload, Payload];

/** Five texts to a mail: every text is somewhere in one, and with `LONG` each is everywhere. */
function mailsOf(): Five[] {
  const step = process.env.LONG ? 1 : 5;
  const one = (at: number) => PAYLOADS[at % PAYLOADS.length] as Payload;
  const five = (at: number): Five => [one(at), one(at + 1), one(at + 2), one(at + 3), one(at + 4)];
  return PAYLOADS.flatMap((_, at) => (at % step === 0 ? [five(at)] : []));
}

function mailReplies([{ mark }, , reasoning, said, written]: Five): Json[] {
  const expect = `report ${mark}`;
  const usage = { input_tokens: 300, output_tokens: 30 };
  const quote = `When is the report ${mark} ready?`;
  const triage = { quote, reasoning: reasoning.text, classification: "respond" };
  const tool_calls = [{ name: "send_email_tool", args: { response_text: written.text } }];
  return [
    { at: "triage_router", expect, usage, json: triage },
    { at: "llm_call", expect, usage, text: said.text, tool_calls },
  ];
}

/** Puts the texts wherever callers, mails and models can put some. */
export async function fill(lab: Lab): Promise<HostileData> {
  const agents = [];
  for (const start of [begin.analyze, begin.mail, begin.sheet, begin.atris, begin.docs])
    agents.push(await start(lab, "calm"));
  const mails: string[] = [];
  for (const payloads of mailsOf()) mails.push(await receive(lab, payloads));
  const full = mails[0] ?? "";
  const assistants: string[] = [];
  const crons: string[] = [];
  for (const payload of PAYLOADS) {
    await addThread(lab, payload);
    await addFile(lab, full, payload);
    await lab.call("PUT", "/store/items", {
      namespace: ["hostile", payload.text.replace(/[.\p{Cc}]/gu, "·").slice(0, 60)],
      key: payload.text.slice(0, 80),
      value: objectOf(payload),
    });
    assistants.push(await addAssistant(lab, payload));
    crons.push(await addCron(lab, assistants.at(-1) ?? "", payload));
  }
  return { agents, mails, full, assistants, crons };
}

async function receive(lab: Lab, [subject, sender]: Five): Promise<string> {
  const { mark } = subject;
  const thread = await lab.newThread();
  const email_input = {
    id: `mail-${mark}`,
    message_id: `mail-${mark}@example.com`,
    from: `${sender.text} <bob@example.com>`,
    to: "alice@example.com",
    account: "alice@example.com",
    subject: subject.text,
    page_content: `When is the report ${mark} ready?\n\n${PAYLOADS.map(({ text }) => text).join("\n\n")}`,
  };
  await lab.wait(thread, "email_assistant", { input: { email_input } });
  return thread;
}

async function addThread(lab: Lab, { mark, text }: Payload): Promise<void> {
  const metadata = { title: text, mark, graph_id: text, assistant_id: text };
  const { thread_id } = await lab.call<Thread>("POST", "/threads", { metadata });
  await lab.call("PATCH", `/threads/${thread_id}`, { metadata: named(text) });
}

/** Names that are not allowed are refused, which is as good. */
async function addFile(lab: Lab, thread: string, { text }: Payload): Promise<void> {
  await lab.upload(thread, encodeURIComponent(text.slice(0, 100)), text).catch(() => undefined);
}

async function addAssistant(lab: Lab, payload: Payload): Promise<string> {
  const { text } = payload;
  const made = await lab.call<Assistant>("POST", "/assistants", {
    graph_id: "email_assistant",
    name: text,
    description: text,
    metadata: objectOf(payload),
    config: { tags: [text], configurable: objectOf(payload) },
  });
  return made.assistant_id;
}

async function addCron(lab: Lab, assistant: string, payload: Payload): Promise<string> {
  const made = await lab.call<Cron>("POST", "/runs/crons", {
    assistant_id: assistant,
    schedule: "0 0 1 1 *",
    input: { email_input: objectOf(payload) },
    metadata: objectOf(payload),
  });
  return made.cron_id;
}

function objectOf({ text, mark }: Payload): Json {
  return { ...named(text), mark };
}

/** Answers for the server as one with another graph would: its names, labels, messages and interrupts are hostile, too. */
export async function speakForAnother(page: Page, thread: string): Promise<void> {
  const at = "2026-01-01T00:00:00Z";
  const rewrite = (url: RegExp, change: (json: JsonObject) => Json) =>
    page.route(url, async (route) => {
      const response = await route.fetch();
      const json = change((await response.json()) as JsonObject);
      await route.fulfill({ response, json });
    });
  await rewrite(new RegExp(`/threads/${thread}/state`), (state) => ({ ...state, values: foreignValues() }));
  await rewrite(/\/labels/, (labels) => ({
    ...labels,
    values: PAYLOADS.map(({ text }, place) => ({
      path: `/messages/${place}/content`,
      id: text.slice(0, 80),
      labels: [text, "private"],
      origin: { by: "node", node: text, checkpoint_id: String(labels.checkpoint_id), at },
    })),
  }));
  await rewrite(/\/assistants\/[^/]+\/graph/, () => foreignGraph());
  await rewrite(/\/trace/, (trace) => ({ ...trace, ...foreignTrace(at) }));
  await page.route(/\/superstep\/inbox/, (route) =>
    route.fulfill({
      json: foreignInbox(thread, at),
      headers: { "x-pagination-total": String(PAYLOADS.length) },
    }),
  );
}

function foreignValues(): Json {
  const messages = PAYLOADS.flatMap(({ mark, text }) => {
    const id = `call-${mark}`;
    const name = text.slice(0, 60);
    return [
      { type: "ai", id: `ai-${mark}`, name, content: text, tool_calls: [{ id, name, args: named(text) }] },
      { type: "tool", id: `tool-${mark}`, tool_call_id: id, name, content: text },
    ];
  });
  return { messages, ...Object.assign({}, ...PAYLOADS.map(({ text }) => named(text))) };
}

function foreignGraph(): Json {
  const nodes = PAYLOADS.map(({ text }) => ({
    id: text,
    type: "runnable",
    data: { id: [text], name: text },
  }));
  const edges = PAYLOADS.slice(1).map(({ text }, at) => ({ source: PAYLOADS[at]?.text ?? "", target: text }));
  return { nodes, edges };
}

function foreignTrace(at: string): JsonObject {
  const cost = {
    model_calls: 1,
    input_tokens: 1,
    output_tokens: 1,
    nano_dollars: 1,
    calls_of_unknown_cost: 0,
  };
  const spans = PAYLOADS.map(({ mark, text }, place) => ({
    span_id: mark,
    name: text,
    kind: ["run", "node", "model", "tool", text][place % 5] ?? text,
    started_at: at,
    ended_at: at,
    duration_ms: 1,
    error: text,
    cost,
    attributes: named(text),
    spans: [],
    node: text,
    model: text,
    tool: text,
    tool_class: text,
    outcome: text,
  }));
  return { spans };
}

function foreignInbox(thread: string, at: string): Json {
  const cost = {
    model_calls: 1,
    input_tokens: 1,
    output_tokens: 1,
    nano_dollars: 1,
    calls_of_unknown_cost: 0,
  };
  return PAYLOADS.map(({ mark, text }, place) => ({
    thread_id: thread,
    graph_id: text,
    assistant_id: null,
    run_id: null,
    node: text,
    checkpoint_ns: "",
    kind: place % 2 ? text : "approval",
    description: text,
    evidence: { [text]: text },
    asked_at: at,
    age_ms: 1,
    deadline: null,
    on_deadline: "wait",
    is_overdue: false,
    cost,
    interrupt: { id: mark, value: foreignQuestion(text, place) },
  }));
}

/** The forms that interrupts of other graphs have. */
function foreignQuestion(text: string, place: number): Json {
  const config = { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true };
  const properties = { [text]: { type: "string", title: text, description: text, enum: [text, "b"] } };
  const forms: Json[] = [
    text,
    {
      action_request: { action: text, args: { ...named(text), count: 1 } },
      config,
      description: text,
      labels: [text],
    },
    { question: text, options: [text, "b"], schema: { type: "object", title: text, properties } },
    { action_requests: [{ name: text, args: named(text), description: text }], review_configs: [] },
    [named(text), text],
  ];
  return forms[place % forms.length] ?? text;
}

/** The text as the name of a field. Read from JSON, so that `__proto__` is a name like others. */
function named(text: string): JsonObject {
  return JSON.parse(`{${JSON.stringify(text)}:${JSON.stringify(text)}}`) as JsonObject;
}

/** Returns what is wrong with what is on the page now. */
export async function problemsOf(page: Page): Promise<string[]> {
  return await page.evaluate(inspect);
}

/** Runs in the page, so it uses nothing from outside. */
function inspect(): string[] {
  const problems: string[] = [];
  const short = (element: Element) =>
    `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}"> ${(element.textContent ?? "").slice(0, 60)}`;
  const MARK = /zq\d\d/;
  const HIDDEN = /(?![\n\r\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
  const all = [...document.querySelectorAll("*")];

  if ("hostile" in globalThis || "hostile" in {}) problems.push("a payload ran");
  for (const element of all) {
    const name = element.tagName.toLowerCase();
    if (/^(iframe|frame|object|embed|base|style|video|audio|source|portal|applet|math|template)$/.test(name))
      problems.push(`element ${short(element)}`);
    if (name === "script" && !/^(\.\/)?(\.\.\/)*assets\/[\w-]+\.js$/.test(element.getAttribute("src") ?? ""))
      problems.push(`script ${short(element)}`);
    if (name === "img" && !(element as HTMLImageElement).src.startsWith("blob:"))
      problems.push(`image ${short(element)}`);
    for (const { name: attribute, value } of element.attributes) {
      if (attribute.startsWith("on")) problems.push(`${attribute} of ${short(element)}`);
      if (/^(action|formaction|srcdoc|ping|background)$/.test(attribute))
        problems.push(`${attribute} of ${short(element)}`);
      if (attribute !== "value" && HIDDEN.test(value))
        problems.push(`hidden characters in ${attribute} of ${short(element)}`);
      if (/url\(/.test(value) && attribute === "style") problems.push(`style of ${short(element)}`);
    }
    if (element instanceof HTMLAnchorElement) {
      const { origin, pathname } = new URL(element.href, location.href);
      const isOwn = origin === location.origin && /^\/(studio\/|docs$|openapi.json$)/.test(pathname);
      if (!isOwn) problems.push(`link to ${element.href.slice(0, 80)}`);
    }
  }

  const CONTROL =
    "a, button, summary, [role=button], [role=link], [role=menuitem], [role=tab], [role=switch], [role=checkbox], [role=alertdialog]";

  /** Whether the direction of a text can change nothing around it. */
  const isIsolated = (text: Text): boolean => {
    // These have text of others only, or nothing next to it.
    if (text.parentElement?.closest("bdi, .md, option, textarea")) return true;
    for (let at = text.parentElement; at && at.id !== "main"; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.display !== "inline" && style.display !== "contents")
        return [...at.childNodes].every(
          (child) => (child.textContent ?? "").trim() === "" || MARK.test(child.textContent ?? ""),
        );
      // Blocks are isolated from each other, not from the text that is next to them inside.
      if (/isolate|plaintext/.test(style.unicodeBidi)) return true;
    }
    return false;
  };
  /** Whether a text of others in a control can pass for a word of the page. */
  const imitates = (control: Element, text: Text): boolean => {
    const isLinkToItem = control instanceof HTMLAnchorElement && !control.classList.contains("button");
    // A link to an item is named by it, and leads to it and nowhere else: checked above.
    // A node of the graph is a button that opens what is known of it.
    if (isLinkToItem || control.classList.contains("graph-node-main")) return false;
    const range = new Range();
    range.setStart(control, 0);
    range.setEnd(text, text.data.search(MARK));
    return !/^\s*[A-Z][a-z]+ /.test(range.toString());
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node as Text;
    const parent = text.parentElement;
    if (!parent) continue;
    if (HIDDEN.test(text.data)) problems.push(`hidden characters in ${short(parent)}`);
    if (!MARK.test(text.data)) continue;
    if (!isIsolated(text)) problems.push(`not isolated: ${short(parent)}`);
    const control = parent.closest(CONTROL);
    if (control && imitates(control, text)) problems.push(`passes for a control: ${short(control)}`);
  }
  for (const control of document.querySelectorAll(CONTROL)) {
    const label = control.getAttribute("aria-label");
    // What the control does comes first, in the page's own words.
    if (label && MARK.test(label) && !/^[A-Z][a-z]+ /.test(label)) problems.push(`named by others: ${label}`);
    const box = control.getBoundingClientRect();
    const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (at && !control.contains(at) && MARK.test(at.textContent ?? "") && !at.contains(control))
      problems.push(`${short(control)} is covered by ${short(at)}`);
  }
  const width = document.documentElement.scrollWidth;
  if (width > innerWidth + 1) problems.push(`the page is ${width} wide, the window ${innerWidth}`);
  return [...new Set(problems)];
}
