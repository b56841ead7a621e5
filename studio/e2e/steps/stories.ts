/** The five agents, each as a visitor meets it: what it is given, how it is answered, and what another answer leads to. */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Locator, Page } from "playwright-core";

import type { Json } from "../../src/api/json.ts";
import { type Lab, workbookPath } from "../lab.ts";
import { scriptFor } from "../script.ts";

export interface Story {
  graph: string;
  /** How the page calls the agent where it is started, and in the inbox. */
  startName: string;
  inboxName: string;
  /** Fills in the form. `folder` is a place for files. */
  fill: (page: Page, tag: string, folder: string) => Promise<void>;
  /** The answers, one after the other, up to the end. */
  answers: ((question: Locator) => Promise<void>)[];
  /** What the finished thread shows. */
  result: (tag: string) => RegExp;
  /** Which of the checkpoints that asked is forked: 0 is the first. */
  forkedQuestion: number;
  otherAnswer: (dialog: Locator) => Promise<void>;
  /** Whether the dialog asks to confirm what happens twice. */
  repeatsEffects: boolean;
  otherResult: (tag: string) => RegExp;
  /** What the first difference of the two branches shows. */
  difference: RegExp;
  /** Looks outside after the first end and after the fork. */
  outside?: (lab: Lab) => Json;
}

const press = (name: string) => (question: Locator) =>
  question.getByRole("button", { name, exact: true }).click();

const reply = (text: string) => async (question: Locator) => {
  await question.getByRole("textbox", { name: "Your answer" }).fill(text);
  await question.getByRole("button", { name: "Send", exact: true }).click();
};

const choose = (name: string) => (dialog: Locator) =>
  dialog.getByRole("radio", { name, exact: true }).check();

/** Chooses files with the browser's dialog. */
async function chooseFiles(page: Page, button: string, files: string | string[]): Promise<void> {
  const [dialog] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: button }).click(),
  ]);
  await dialog.setFiles(files);
}

function write(folder: string, files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

export const stories: Story[] = [
  {
    graph: "analyze",
    startName: "Start Analyze notes",
    inboxName: "Interview",
    async fill(page, tag, folder) {
      const field = page.getByRole("textbox", { name: "What do you want to find out?" });
      await field.fill(`Choose a queue for orders ${tag}`);
      const notes = join(folder, "notes");
      write(notes, { "a.md": `Ten thousand orders ${tag} a day.\n`, "b.txt": "We have one machine.\n" });
      await chooseFiles(page, "Choose a folder", notes);
    },
    answers: [reply("No, only those of one customer."), reply("DONE")],
    result: () => /Use a queue in PostgreSQL/,
    forkedQuestion: 0,
    otherAnswer: async (dialog) => {
      await dialog.getByRole("radio", { name: "Answer", exact: true }).check();
      await dialog.getByRole("textbox", { name: "Your answer" }).fill("DONE");
    },
    repeatsEffects: false,
    otherResult: () => /Use a log with one partition/,
    difference: /No, only those of one customer.*DONE/,
  },
  {
    graph: "sheet",
    startName: "Start Work on a spreadsheet",
    inboxName: "Spreadsheet",
    async fill(page, tag) {
      const field = page.getByRole("textbox", { name: "What should be done with the workbook?" });
      await field.fill(`Count each Product in a new sheet ${tag}`);
      await chooseFiles(page, "Choose files", workbookPath());
    },
    answers: [press("Accept")],
    result: () => /Saved cells: 10 cells/,
    forkedQuestion: 0,
    otherAnswer: choose("Reject"),
    repeatsEffects: false,
    otherResult: () => /The change set was rejected/,
    difference: /accept.*reject/,
  },
  {
    graph: "docs",
    startName: "Start Describe a folder",
    inboxName: "Documentation",
    async fill(page, _tag, folder) {
      write(folder, {
        "shop/README.md": "# Shop\n",
        "shop/src/main.rs": "mod till;\n\nfn main() {\n    till::pay(3);\n}\n",
        "shop/src/till.rs": 'pub fn pay(cents: u32) {\n    println!("{cents}");\n}\n',
      });
      await chooseFiles(page, "Choose a folder", join(folder, "shop"));
      await page.getByRole("checkbox", { name: "file-structure" }).check();
      await page
        .getByRole("group", { name: "Ask me before each round" })
        .getByRole("radio", { name: "Yes" })
        .check();
    },
    answers: [press("Accept")],
    result: () => /Refinement 1/,
    forkedQuestion: 0,
    otherAnswer: choose("Stop here"),
    repeatsEffects: false,
    otherResult: () => /a person said that this is enough/,
    difference: /enough.*skipped/,
  },
  {
    graph: "atris",
    startName: "Start Ask an API",
    inboxName: "API caller",
    async fill(page) {
      await page.getByRole("textbox", { name: "Your question" }).fill("@shop delete order 1001");
    },
    answers: [press("Accept")],
    result: () => /deleted/,
    forkedQuestion: 0,
    otherAnswer: choose("Ignore"),
    repeatsEffects: true,
    otherResult: () => /you said no/,
    difference: /a person said no/,
    outside: (lab) => lab.shop.calls.filter((call) => call === "DELETE /orders/1001").length,
  },
  {
    graph: "email_assistant",
    startName: "Start Answer a mail",
    inboxName: "Email assistant",
    async fill(page, tag) {
      const fields = {
        From: "Bob <bob@example.com>",
        To: "alice@example.com",
        Subject: `The report ${tag}?`,
        "Text of the mail": "When is the report ready?",
      };
      for (const [name, text] of Object.entries(fields))
        await page.getByRole("textbox", { name }).first().fill(text);
    },
    answers: [press("Accept")],
    result: (tag) => new RegExp(`The report ${tag} is ready on Friday`),
    forkedQuestion: 0,
    otherAnswer: async (dialog) => {
      await dialog.getByRole("radio", { name: "Edit", exact: true }).check();
      await dialog.getByRole("textbox", { name: "response_text" }).fill("The report is ready on Monday.");
    },
    repeatsEffects: true,
    otherResult: () => /ready on Monday/,
    difference: /Name a day and a time/,
  },
];

/** Replies of the model that only forks need. A fork at a question of a subgraph runs the subgraph from its beginning. */
export function repliesOfForks(tags: string[]): Json[] {
  return tags.flatMap((tag) => [...conclusion(tag), ...again(tag)]);
}

function conclusion(tag: string): Json[] {
  const none = { assumptions: [], components: [], alternatives: [], open_questions: [] };
  const json = { ...none, decisions: [{ claim: "Use a log with one partition." }] };
  return [{ at: "final", expect: `orders ${tag}`, usage: { input_tokens: 500, output_tokens: 80 }, json }];
}

/** What the model said up to the question, and what it says after the other answer. */
function again(tag: string): Json[] {
  const replies = (scriptFor([tag]) as { replies: { at: string }[] }).replies;
  const before = replies.filter(({ at }) => at === "llm_call" || at.startsWith("file-structure"));
  return before.filter(({ at }) => !at.includes("Refinement"));
}
