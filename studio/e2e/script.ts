/** Replies of the scripted model, for as many threads of every agent as a test needs. Each thread's replies wait for its own tag. */

import type { Json } from "../src/api/json.ts";

type Reply = Record<string, Json>;

export function scriptFor(tags: string[], more: Json[] = []): Json {
  return {
    price: { input: 400, output: 1600 },
    replies: [
      ...tags.flatMap((tag) => [...interview(tag), ...mail(tag), ...counting(tag), ...pages()]),
      ...more,
    ],
  };
}

const usage = (input: number, output: number) => ({ input_tokens: input, output_tokens: output });

/** `analyze` over notes that contain the tag. */
function interview(tag: string): Reply[] {
  const expect = `orders ${tag}`;
  return [
    {
      at: "initial",
      expect,
      text: `You take ten thousand orders ${tag} a day. Is ordering required across customers?`,
      usage: usage(210, 32),
    },
    {
      at: "followup",
      expect,
      text: "Then one partition for each customer is enough. Who pays for it?",
      usage: usage(290, 29),
    },
    {
      at: "final",
      expect,
      usage: usage(600, 120),
      json: {
        assumptions: [{ claim: "The load stays near ten thousand orders a day." }],
        components: [
          { claim: "One machine is enough.", file: "notes/b.txt", line: 1, quote: "We have one machine" },
        ],
        alternatives: [{ claim: "A second machine." }],
        decisions: [{ claim: "Use a queue in PostgreSQL." }],
        open_questions: [{ claim: "Who runs it at night?" }],
      },
    },
  ];
}

/** `email_assistant` for a mail whose subject contains the tag. */
function mail(tag: string): Reply[] {
  const expect = `report ${tag}`;
  return [
    {
      at: "triage_router",
      expect,
      usage: usage(300, 30),
      json: {
        quote: "When is the report ready?",
        reasoning: "A direct question.",
        classification: "respond",
      },
    },
    {
      at: "llm_call",
      expect,
      usage: usage(520, 60),
      tool_calls: [
        { name: "send_email_tool", args: { response_text: `The report ${tag} is ready on Friday.` } },
      ],
    },
    { at: "llm_call", expect, usage: usage(580, 12), tool_calls: [{ name: "Done", args: { done: true } }] },
    {
      at: "learn",
      expect,
      usage: usage(240, 24),
      json: { chain_of_thought: "", user_preferences: "Name a day and a time.", replaces: 0 },
    },
  ];
}

/** `sheet` for an instruction that contains the tag. */
function counting(tag: string): Reply[] {
  const expect = `sheet ${tag}`;
  const code = [
    "counts = table('Sales').groupby('Product').size()",
    "ws = workbook.create_sheet('Counts')",
    "ws.append(['Product', 'Count'])",
    "for name, count in counts.items():",
    "    ws.append([name, int(count)])",
  ].join("\n");
  return [
    {
      at: "planner_node",
      expect,
      usage: usage(700, 40),
      tool_calls: [{ name: "PythonInterpreter", args: { code } }],
    },
    { at: "planner_node", expect, usage: usage(880, 12), text: "Finish: There are four products." },
  ];
}

/** `docs` for one of its agents. Nothing in its requests tells threads apart, so all get the same. */
function pages(): Reply[] {
  const score = (overall: number) => ({
    completeness: overall,
    clarity: overall,
    depth: overall,
    accuracy: overall,
  });
  const at = (step: string) => `file-structure-${step}`;
  return [
    { at: at("InitialAnalysis"), usage: usage(420, 24), text: "The program begins in `src/main.rs`." },
    { at: at("EvaluateClarity"), usage: usage(300, 20), json: score(62) },
    {
      at: at("GenerateQuestions"),
      usage: usage(310, 40),
      json: { questions: ["What does `pay` do?", "Where would a new module go?"], missing: ["its purpose"] },
    },
    {
      at: at("Refinement-1"),
      usage: usage(700, 60),
      text: "The program begins in `src/main.rs`. Money is taken by `pay` in `src/till.rs`.\n\nA new module goes into `src`.",
    },
    { at: at("EvaluateClarity"), usage: usage(330, 20), json: score(90) },
  ];
}
