/** Texts of forks and branches. */

import { formatCount } from "../pure/format.ts";

const times = (count: number): string => (count === 1 ? "once" : `${count} times`);

/** What a call of a tool means to somebody who has never heard of it. */
function again(tool: string, calls: number): string {
  if (tool === "send_email_tool")
    return calls === 1 ? "1 mail would be sent again." : `${calls} mails would be sent again.`;
  if (tool === "schedule_meeting_tool") {
    return calls === 1
      ? "1 meeting would be scheduled again."
      : `${calls} meetings would be scheduled again.`;
  }
  return `The tool ${tool} would be called again ${times(calls)}, and its effect would happen again.`;
}

export const fork = {
  title: "Fork from this checkpoint",
  loading: "what the fork would repeat",
  /** The input comes before the first step. */
  at: (step: number) => (step < 0 ? "Before step 0" : `Step ${step}`),
  nextNodes: (nodes: readonly string[]) => `Runs next: ${nodes.join(", ")}`,
  nothingNext: "Nothing runs after this checkpoint.",
  mode: "What is different",
  modes: {
    again: "The same again",
    answer: "Another answer",
    state: "Another state",
    input: "Another input",
    assistant: "Another model or assistant",
  },
  modeHints: {
    again: "Runs what comes after this checkpoint once more. Models may reply differently.",
    answer: "The thread waited for a person here. Give another answer and see where it leads.",
    state: "Change what the graph knows, then run what follows.",
    input: "Start from here with another input.",
    assistant: "Run what follows with another model, or with the settings of another assistant or version.",
  },
  noMode: "Nothing can be repeated from this checkpoint. Choose an earlier one.",
  noPermission: "Your API key does not allow to start runs. Ask an administrator for the permission “run”.",
  question: (place: number, count: number) =>
    count === 1 ? "What was asked" : `Question ${place} of ${count}`,
  answerField: "Your answer",
  answerText: "As text",
  answerJson: "As JSON",
  answerForm: "As a form",
  answerHow: "How to enter the answer",
  jsonProblem: (why: string) => `This is not valid JSON: ${why}`,
  nowOpen: "The thread still waits here. Your answer continues it; nothing is repeated.",
  answerLater:
    "The fork runs up to the question first, then it gives your answer. If it asks something else, the answer stays with you.",
  channels: "Values to change",
  channelValue: (name: string) => `New value of ${name}`,
  noChannels:
    "No value of this graph can be changed from outside: it declares no inputs. Fork with another answer or another input.",
  closedChannels: (names: readonly string[]) => `Written by the graph alone: ${names.join(", ")}.`,
  inputField: "Input",
  assistant: "Assistant",
  version: "Version",
  versionName: (version: number, isLatest: boolean) => `Version ${version}${isLatest ? " (latest)" : ""}`,
  settings: "Settings of this fork",
  noSettings:
    "This graph declares no settings, so another assistant runs in the same way. Settings that its nodes do not read have no effect.",
  oneModel:
    "This server allows its own model only. Its operator allows others with “archie serve --allow-model MODEL”.",
  inherited: (names: readonly string[]) =>
    `The latest version also sets ${names.join(", ")}. A run adds those to the settings of an older version.`,
  where: "Where",
  inPlace: "In this thread, as a new branch",
  newThread: "In a copy of the thread",
  busy: "A run is active on this thread. Wait for its end, or fork in a copy of the thread.",
  effects: "What would happen twice",
  asBefore: "This is what happened after the checkpoint before. The fork may take another way.",
  again,
  unknown: (tools: readonly string[], calls: number) =>
    `${calls} ${calls === 1 ? "call" : "calls"} of ${tools.join(", ")}: nobody declared what a second call does.`,
  same: (tools: readonly string[], calls: number) =>
    `${calls} ${calls === 1 ? "call" : "calls"} of ${tools.join(", ")}: repeated, but the result outside stays the same.`,
  reads: (tools: readonly string[], calls: number) =>
    `${calls} ${calls === 1 ? "read" : "reads"} (${tools.join(", ")}): reads are harmless.`,
  toolClass: (name: string) => `Class: ${name}`,
  noTools: "No tool would be called again.",
  interrupts: (count: number) =>
    count === 1 ? "1 question would be asked again." : `${count} questions would be asked again.`,
  cost: "Expected cost",
  costOf: (cost: string, calls: string, input: string, output: string) =>
    `${cost} for ${calls} (${input} tokens in, ${output} out)`,
  otherModel: (model: string) => `This is what the models of before cost. ${model} has its own price.`,
  modelCalls: (count: string, isOne: boolean) => (isOne ? "1 model call" : `${count} model calls`),
  noModels: "No model would be called again.",
  confirm: "I know that this happens a second time.",
  start: "Start the fork",
  starting: "Starting the fork…",
  waiting: "Running up to the question…",
  answering: "Giving your answer…",
  askedElse:
    "The fork asks something else than before. Your answer was not given: answer the new question in the thread.",
  goToThread: "Go to the thread",

  branches: "Branches",
  loadingBranches: "the branches",
  emptyTitle: "This thread has no checkpoints yet.",
  emptyNext: "They appear here when its first run begins.",
  oneBranch: "This thread has one branch. Fork from a checkpoint to try another way.",
  incomplete: (count: number) => `The tree shows the newest ${formatCount(count)} checkpoints.`,
  branch: (place: number) => `Branch ${place}`,
  current: "current",
  steps: (count: number) => (count === 1 ? "1 checkpoint" : `${count} checkpoints`),
  forkedAt: (step: number) => `Forked after step ${step}`,
  beginning: "From the beginning",
  ends: {
    finished: "finished",
    waits: "waits for an answer",
    failed: "failed",
    running: "runs",
    stopped: (nodes: readonly string[]) => `stopped before ${nodes.join(", ")}`,
  },
  changes: (count: number) =>
    count === 0
      ? "no changes since the fork"
      : count === 1
        ? "1 change since the fork"
        : `${count} changes since the fork`,
  open: "Open",
  openOf: (name: string) => `Open the end of ${name}`,
  forkHere: "Fork here",
  forkHereOf: (name: string) => `Fork here: ${name}`,
  makeTest: "Make a test of it",
  makeTestOf: (name: string) => `Make a test of it: ${name}`,
  making: "Reading the branch…",
  made: (file: string, lost: number) =>
    lost === 0
      ? `Saved ${file}. Play it again with “archie test ${file}”.`
      : `Saved ${file}. It lacks something, so it may end in another way: see “not_recovered” in the file.`,
  compareThis: "Compare",
  compareOf: (name: string) => `Compare ${name}`,
  chooseTwo: "Choose two branches to see them side by side.",
  showMore: (count: number) => `Show ${count} more`,
  comparison: (left: string, right: string) => `${left} and ${right}`,
  commonStep: (step: number) => `Both have the same checkpoints up to step ${step}.`,
  noCommon: "They have no checkpoint in common.",
  noStep: "Nothing here",
  firstDifference: "First difference",
  loadingDifference: "the first difference",
  noDifference: "They do not differ, apart from ids that every run makes.",
  notLooked: (count: number) =>
    `The first ${count} steps do not differ. Compare later checkpoints in the state view.`,
  compareAll: "Compare both ends in full",
  sources: { input: "Input", loop: "Start", update: "Edited by a person", fork: "Fork" },
  asked: "asked a person",
  fileLost: (path: string) => `The file ${path} is too large for a test case. Add it by hand, in base64.`,
} as const;
