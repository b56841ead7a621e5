from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class Essay(TypedDict):
    text: str
    words: int


class State(TypedDict):
    topic: str
    report: str


def write(state: Essay) -> dict:
    return {"text": f"{state['text']} sleep all day"}


def count(state: Essay) -> dict:
    return {"words": len(state["text"].split())}


writer_builder = StateGraph(Essay)
writer_builder.add_node(write)
writer_builder.add_node(count)
writer_builder.add_edge(START, "write")
writer_builder.add_edge("write", "count")
writer_builder.add_edge("count", END)
writer = writer_builder.compile()


def call_writer(state: State) -> dict:
    essay = writer.invoke({"text": state["topic"]})
    return {"report": f"{essay['text']} ({essay['words']} words)"}


builder = StateGraph(State)
builder.add_node("writer", call_writer)
builder.add_edge(START, "writer")
builder.add_edge("writer", END)
graph = builder.compile()

print(graph.invoke({"topic": "Cats"}))
for namespace, update in graph.stream({"topic": "Dogs"}, subgraphs=True):
    print("inner" if namespace else "outer", update)
