/** Replies of the scripted model, for as many threads of every agent as a test needs. Each thread's replies wait for its own tag. */

import type { Json } from "../src/api/json.ts";

type Reply = Record<string, Json>;

export function scriptFor(tags: string[]): Json {
  return {
    price: { input: 400, output: 1600 },
    replies: tags.flatMap((tag) => [...interview(tag), ...mail(tag), ...counting(tag), ...pages(tag)]),
  };
}

const usage = (input: number, output: number) => ({ input_tokens: input, output_tokens: output });

/** `analyze` over notes that contain the tag. */
function interview(tag: string): Reply[] {
  const expect = `orders ${tag}`;
  return [
    { at: "initial", expect, text: `You take ten thousand orders ${tag} a day. Is ordering required across customers?`, usage: usage(210, 32) },
    { at: "followup", expect, text: "Then one partition for each customer is enough. Who pays for it?", usage: usage(290, 29) },
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
    { at: "triage_router", expect, usage: usage(300, 30), json: { quote: "When is the report ready?", reasoning: "A direct question.", classification: "respond" } },
    { at: "llm_call", expect, usage: usage(520, 60), tool_calls: [{ name: "send_email_tool", args: { response_text: `The report ${tag} is ready on Friday.` } }] },
    { at: "llm_call", expect, usage: usage(580, 12), tool_calls: [{ name: "Done", args: { done: true } }] },
    { at: "learn", expect, json: { chain_of_thought: "", user_preferences: "Name a day and a time.", replaces: 0 } },
  ];
}

/** `sheet` for an instruction that contains the tag. */
function counting(tag: string): Reply[] {
  const expect = `sheet ${tag}`;
  return [
    { at: "planner", expect, usage: usage(700, 40), json: { next: "tool", tool: "PythonInterpreter" } },
  ];
}

/** `docs` for a folder with the tag in its files. */
function pages(_tag: string): Reply[] {
  return [];
}
