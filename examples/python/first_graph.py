from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    topic: str
    draft: str
    revision: int


def write(state: State) -> dict:
    revision = state["revision"] + 1
    return {"draft": f"A text about {state['topic']}, version {revision}", "revision": revision}


def publish(state: State) -> dict:
    return {"draft": f"{state['draft']} (published)"}


def route(state: State) -> Literal["write", "publish"]:
    return "write" if state["revision"] < 3 else "publish"


builder = StateGraph(State)
builder.add_node(write)
builder.add_node(publish)
builder.add_edge(START, "write")
builder.add_conditional_edges("write", route)
builder.add_edge("publish", END)
graph = builder.compile()

print(graph.invoke({"topic": "cats", "revision": 0})["draft"])
