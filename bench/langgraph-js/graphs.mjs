// The graphs of the workloads, as the documentation of LangGraph.js writes them.
import { AIMessage } from "@langchain/core/messages";
import { Annotation, END, Send, START, StateGraph, interrupt, messagesStateReducer } from "@langchain/langgraph";

export const NODES = 20;
export const beginning = () => ({ messages: [], step: 0 });

// Random letters, so that no compression hides what a store keeps; made once, for words are not what is measured.
const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) >> 8;
const letters = () => Array.from({ length: 200 }, () => LETTERS[random() % LETTERS.length]).join("");
const MESSAGES = Array.from({ length: 512 }, letters);

const Talk = Annotation.Root({
  messages: Annotation({ reducer: messagesStateReducer, default: () => [] }),
  step: Annotation(),
});

const step = (state) => ({
  messages: [new AIMessage(MESSAGES[state.step % MESSAGES.length])],
  step: state.step + 1,
});

export function chain(checkpointer) {
  const names = Array.from({ length: NODES }, (_, at) => `n${at}`);
  const graph = new StateGraph(Talk);
  for (const name of names) graph.addNode(name, step);
  [START, ...names].forEach((name, at) => graph.addEdge(name, names[at] ?? END));
  return graph.compile({ checkpointer });
}

export function loop(checkpointer, turns) {
  const next = (state) => (state.step >= 2 * turns ? END : "planner");
  return new StateGraph(Talk)
    .addNode("planner", step)
    .addNode("tool", step)
    .addEdge(START, "planner")
    .addEdge("planner", "tool")
    .addConditionalEdges("tool", next, ["planner", END])
    .compile({ checkpointer });
}

export function fanOut(checkpointer, branches) {
  const Fan = Annotation.Root({
    out: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }),
    total: Annotation(),
  });
  const spread = () => Array.from({ length: branches }, (_, i) => new Send("branch", { i }));
  return new StateGraph(Fan)
    .addNode("split", () => ({}))
    .addNode("branch", (state) => ({ out: [state.i] }))
    .addNode("join", (state) => ({ total: state.out.length }))
    .addEdge(START, "split")
    .addConditionalEdges("split", spread, ["branch"])
    .addEdge("branch", "join")
    .addEdge("join", END)
    .compile({ checkpointer });
}

export function approval(checkpointer) {
  const ask = (state) => {
    const answer = interrupt({ question: "approve?" });
    return { messages: [new AIMessage(String(answer))], step: state.step + 1 };
  };
  return new StateGraph(Talk)
    .addNode("draft", step)
    .addNode("ask", ask)
    .addNode("done", step)
    .addEdge(START, "draft")
    .addEdge("draft", "ask")
    .addEdge("ask", "done")
    .addEdge("done", END)
    .compile({ checkpointer });
}
