import type { AnswerWay } from "../pure/answers.ts";
import { dictionary } from "../pure/dictionary.ts";
import { formatCount } from "../pure/format.ts";
import type { FormProblem } from "../pure/schema_form.ts";

type WayId = AnswerWay["id"];

const items = (count: number) => `${formatCount(count)} ${count === 1 ? "item" : "items"}`;

export const inbox = {
  title: "Inbox",
  waiting: (count: number) => (count === 0 ? "Nothing is waiting" : `${items(count)} waiting for an answer`),
  list: "Open questions, nearest deadline first",
  empty: "No open questions.",
  emptyNext: "When an agent needs a decision, it appears here by itself.",
  emptyStart: "Start an agent",
  rowLoading: "Loading…",
  choose: "Select a question from the list to read and answer it.",
  looking: "Looking for this question…",
  gone: "This question is not open any more.",
  goneNext: "It was answered, or its thread was deleted.",
  next: "Next question",
  toList: "Back to the list",
  newAbove: (count: number) => `${items(count)} above`,
  ofThread: (at: number, count: number) => `${at} of ${count} of one thread`,
  agents: dictionary({
    analyze: "Interview",
    email_assistant: "Email assistant",
    sheet: "Spreadsheet",
    docs: "Documentation",
    atris: "API caller",
    atris_watch: "API watch",
  }),
  /** What kind of question it is, in a few words. */
  kinds: dictionary({
    approval: "asks for approval",
    confirmation: "asks you to confirm",
    notify: "shows you a mail",
    question: "has a question",
    elicitation: "passes on a question of a tool's server",
    outcome_unknown: "does not know whether a call happened",
    gate: "asks whether to continue",
    budget: "has reached a budget",
    timer: "is waiting",
    missing_value: "needs a value",
  }),
  asks: "is waiting for you",
  /** The subject of a question whether to work on a page again. */
  gate: (page: string, round: number, rounds: number) =>
    `Work on “${page}” again? Round ${round} of at most ${rounds}`,
  emptySubject: "A question without text",

  facts: {
    title: "About this question",
    why: "Why it asks, in the agent's own words",
    evidence: "Evidence",
    labels: "Labels",
    noLabels: "none",
    unknownLabels: "not recorded",
    cost: "Cost so far",
    calls: (calls: number, tokens: number) =>
      `${formatCount(calls)} model ${calls === 1 ? "call" : "calls"}, ${formatCount(tokens)} tokens`,
    asked: "Asked",
    deadline: "Deadline",
    noDeadline: "none; it stays open",
    overdue: "Overdue",
    after: {
      wait: "After that, it still waits for an answer.",
      answer: "After that, the agent continues with its own default answer.",
      fail: "After that, the run fails.",
    },
    thread: "Open the thread",
    more: "Show all",
    less: "Show less",
  },

  ways: {
    accept: "Accept",
    edit: "Edit",
    change: "Accept with changes",
    response: "Respond",
    ignore: "Ignore",
    reject: "Reject",
    skip: "Stop here",
    raise: "Raise the limit",
    stop: "Stop",
    happened: "It happened",
    call: "It did not happen: call it",
    result: "Give the result",
    answer: "Answer",
    json: "Answer with JSON",
  } satisfies Record<WayId, string>,
  /** What an answer causes, in one sentence. `action` is the name of a tool. */
  causes: (way: WayId, kind: string, action: string | undefined): string => {
    // The name is text of others: it must not end the quotation and continue in the page's voice.
    const call = action ? `\`${action.replace(/[\s`]+/g, " ").slice(0, 80)}\`` : "the action";
    const known = action === undefined ? undefined : ACTIONS[action]?.[way];
    if (known && kind === "approval") return known;
    if (kind === "notify") return NOTIFY[way] ?? causes(way, call);
    if (kind === "gate") return GATE[way] ?? causes(way, call);
    if (kind === "elicitation" && way === "response")
      return `Sends your answer to the tool's server and calls ${call} again.`;
    if (kind === "question" && way === "ignore") return "Gives no answer. The agent ends without an action.";
    if (kind === "question" && way === "response") return "The agent reads your text and continues.";
    if (!action && way === "accept") return "Saves everything that is shown.";
    if (!action && way === "edit") return "Saves what is shown, with your changes.";
    if (!action && way === "reject") return "Saves nothing.";
    return causes(way, call);
  },
  causesTitle: "What each answer causes",
  answers: "Answers",
  yourText: dictionary({
    response: "Your text to the agent",
    answer: "Your answer",
    result: "The result that the agent continues with",
  }),
  editTitle: "Change the arguments",
  formTitle: "Your answer",
  changes: "Your changes",
  noChanges: "No changes yet. Change a value, or accept as it is.",
  asJson: "Edit as JSON",
  asFields: "Edit as fields",
  part: (at: number, count: number, action: string | undefined) =>
    `Decision ${at} of ${count}${action ? `: ${action}` : ""}`,
  send: (way: WayId) =>
    way === "edit"
      ? "Send with changes"
      : way === "raise"
        ? "Raise the limit"
        : way === "result"
          ? "Send the result"
          : "Send",
  cancel: "Cancel",
  decided: (way: WayId) => `Your decision: ${inbox.ways[way]}`,
  decide: "Keep this decision",
  change: "Change",
  sendAll: (decided: number, all: number) =>
    all === 1
      ? "Send the answer"
      : decided === all
        ? `Send all ${all} answers`
        : `Send ${decided} of ${all} answers`,
  together: (count: number) =>
    `This thread asks ${count} questions. Decide each one; one button sends the answers together.`,
  othersStay: "The questions without a decision stay open.",
  mayNot: "Your API key allows you to read this question, but not to answer it.",

  answered: (way: string) => `Answered: ${way}`,
  held: (way: string, seconds: number) => `Answered: ${way}. Sends in ${seconds} s.`,
  sending: (way: string) => `Answered: ${way}. Sending…`,
  sent: (way: string) => `Answered: ${way}. Sent.`,
  away: (way: string) =>
    `Answered: ${way}. The server cannot be reached; the page sends the answer when it is back.`,
  heldMany: (count: number) => `${formatCount(count)} answers are sent in a moment.`,
  phases: {
    held: "Answered",
    sending: "Sending",
    away: "Waiting for the server",
    sent: "Sent",
    refused: "Refused",
    taken: "Answered by another",
  },
  draft: "Draft",
  due: "Due",
  undo: "Undo",
  sendNow: "Send now",
  refused: "The server refused the answer.",
  refusedNext: "Nothing was sent. What you entered is still here.",
  busy: "The thread is running. Your answer was not taken; try again when it waits for you.",
  runFailed: "The server took your answer, and the run failed after it.",
  mineFailed: (subject: string) => `After your answer to “${subject}”, the run failed. The thread shows why.`,
  first: (who: string | undefined, when: string | undefined) =>
    `${who ?? "Another person"} was first${when ? ` (${when})` : ""}: this question is already answered.`,
  closed: "This question was closed without an answer: its run was cancelled, or its deadline passed.",
  deadlinePassed: "The deadline passed, and the agent continued with its default answer.",
  firstNext: "Your answer was not used.",
  theirAnswer: "The answer that was used",
  yourDraft: "What you had entered",
  left: (subject: string, who: string | undefined) =>
    who ? `${who} answered “${subject}”.` : `“${subject}” was answered elsewhere.`,
  leftClosed: (subject: string) => `“${subject}” was closed without an answer.`,
  leftMany: (count: number) => `${items(count)} were answered elsewhere.`,
  arrived: (count: number) => (count === 1 ? "1 new item" : `${formatCount(count)} new items`),
  dismiss: "Dismiss",
  undone: "Undone. Nothing was sent.",
  nothingToUndo: "There is nothing to undo: sent answers cannot be taken back.",

  bulk: {
    open: (count: number) => `Approve ${count} like this…`,
    title: "Approve identical items",
    read: (action: string) =>
      `Read the list. Every selected item runs \`${action}\` with exactly the arguments shown.`,
    loading: (count: number) => `Looking for more: ${formatCount(count)} found so far.`,
    all: "Select all",
    none: "Select none",
    item: (subject: string) => `Approve: ${subject}`,
    list: "Items to approve",
    submit: (count: number) => `Approve ${items(count)}`,
    way: "Accept",
    cut: (count: number) => `The list shows the first ${formatCount(count)}. Approve them to see the rest.`,
  },

  keys: {
    title: "Keyboard shortcuts",
    open: "Keys",
    list: [
      ["j", "Next question"],
      ["k", "Previous question"],
      ["a", "Accept"],
      ["e", "Edit"],
      ["r", "Respond or answer"],
      ["i", "Ignore, reject or stop"],
      ["u", "Undo an answer that is not sent yet"],
      ["?", "Show this list"],
    ] as const,
    off: "They do nothing while you type.",
    enabled: "Use single-key shortcuts",
  },

  thread: { title: "Waiting for you" },

  form: {
    required: "required",
    optional: "optional",
    choose: "Choose…",
    add: (name: string) => `Add to ${name}`,
    item: (name: string, at: number) => `${name}, item ${at}`,
    remove: (name: string) => `Remove ${name}`,
    removeShort: "Remove",
    variant: (name: string) => `Kind of ${name}`,
    value: "Value",
    set: (name: string) => `Set ${name}`,
    unset: (name: string) => `Leave out ${name}`,
    yes: "Yes",
    no: "No",
    nullValue: "No value (null)",
    json: "JSON. Text without quotes is taken as text.",
    readAs: (type: string) => `Read as ${type}.`,
    types: dictionary({
      string: "text",
      number: "a number",
      boolean: "yes or no",
      object: "an object",
      array: "a list",
      null: "no value",
    }),
    variants: dictionary({
      string: "Text",
      number: "Number",
      integer: "Whole number",
      boolean: "Yes or no",
      null: "No value",
      array: "List",
      object: "Fields",
      any: "Anything",
    }),
    broken: "This is not valid JSON. Check brackets, quotes and commas.",
    empty: "No items.",
    problem: ({ code, limit }: FormProblem): string => {
      switch (code) {
        case "required":
          return "Enter a value.";
        case "unknown":
          return "This field is not allowed. Remove it.";
        case "text":
          return "Enter text.";
        case "number":
          return "Enter a number.";
        case "integer":
          return "Enter a whole number.";
        case "boolean":
          return "Choose yes or no.";
        case "null":
          return "This must be empty (null).";
        case "list":
          return "Enter a list, such as [1, 2].";
        case "object":
          return 'Enter an object, such as {"name": "value"}.';
        case "choice":
          return "Choose one of the values.";
        case "variant":
          return "Choose one of the kinds.";
        case "minLength":
          return `Enter at least ${limit} characters.`;
        case "maxLength":
          return `Enter at most ${limit} characters.`;
        case "minimum":
          return `Enter a number that is not below ${limit}.`;
        case "maximum":
          return `Enter a number that is not above ${limit}.`;
        case "multipleOf":
          return `Enter a multiple of ${limit}.`;
        case "minItems":
          return `Add items until there are ${limit}.`;
        case "maxItems":
          return `Remove items until there are ${limit}.`;
        case "dateTime":
          return "Enter a date and a time, such as 2026-05-01T09:00:00Z.";
      }
    },
  },
} as const;

const NOTIFY: Partial<Record<WayId, string>> = {
  response: "The agent drafts a reply with your text. You approve the mail before it is sent.",
  ignore: "Sends nothing. The agent finishes this mail.",
};
/** What answers cause, for actions that a person knows by another name than the program. */
const ACTIONS: Readonly<Record<string, Partial<Record<WayId, string>>>> = {
  send_email_tool: {
    accept: "Sends the mail exactly as shown.",
    edit: "Sends the mail with your changes.",
    response: "Sends nothing yet. The agent reads your text and continues.",
    ignore: "Sends nothing. The agent learns that you said no.",
  },
  schedule_meeting_tool: {
    accept: "Schedules the meeting exactly as shown.",
    edit: "Schedules the meeting with your changes.",
    response: "Schedules nothing yet. The agent reads your text and continues.",
    ignore: "Schedules nothing. The agent learns that you said no.",
  },
  call_api: {
    accept: "Makes the call exactly as shown.",
    edit: "Makes the call with your changes.",
    ignore: "Makes no call. The agent learns that you said no.",
  },
};
const GATE: Partial<Record<WayId, string>> = {
  accept: "The agent works another round, at about the estimated cost.",
  change: "The agent works another round with your changes, at about the estimated cost.",
  skip: "The agent stops here and keeps the best version so far.",
};

function causes(way: WayId, call: string): string {
  switch (way) {
    case "accept":
      return `Runs ${call} with exactly what is shown.`;
    case "edit":
      return `Runs ${call} with your changes.`;
    case "change":
      return "Accepts with your changes.";
    case "response":
      return `Does not run ${call}. The agent reads your text and continues.`;
    case "ignore":
      return `Does not run ${call}. The agent learns that you said no.`;
    case "reject":
      return "Rejects it. Nothing is changed.";
    case "skip":
      return "Stops here and keeps what there is.";
    case "raise":
      return "Raises the limit by your amount. The agent continues and spends more.";
    case "stop":
      return "The agent stops. It spends nothing more.";
    case "happened":
      return `The agent continues as if ${call} had succeeded.`;
    case "call":
      return `Runs ${call} now. If it did happen before, it happens twice.`;
    case "result":
      return `Does not run ${call}. The agent continues with your result.`;
    case "answer":
      return "The agent reads your answer and continues.";
    case "json":
      return "The agent reads your JSON and continues.";
  }
}
