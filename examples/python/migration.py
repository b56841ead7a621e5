from typing import NotRequired, TypedDict
from uuid import uuid4

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class StateV1(TypedDict):
    name: str
    letter: str


def write_v1(state: StateV1) -> dict:
    greeting = interrupt("Which greeting?")
    return {"letter": f"{greeting} {state['name']}"}


class State(TypedDict):
    full_name: NotRequired[str]
    name: NotRequired[str]  # Of threads stored by version 1; without it their name is lost.
    letter: str


def full_name(state: State) -> str:
    return state["full_name"] if "full_name" in state else state["name"]


def write(state: State) -> dict:
    greeting = interrupt("Which greeting?")
    return {"letter": f"{greeting} {full_name(state)}"}


builder_v1 = StateGraph(StateV1)
builder_v1.add_node("write", write_v1)
builder_v1.add_edge(START, "write")
builder_v1.add_edge("write", END)
builder = StateGraph(State)
builder.add_node("write", write)
builder.add_edge(START, "write")
builder.add_edge("write", END)

with SqliteSaver.from_conn_string("migration.db") as checkpointer:
    old = {"configurable": {"thread_id": str(uuid4())}}
    builder_v1.compile(checkpointer=checkpointer).invoke({"name": "Kim"}, old)
    graph = builder.compile(checkpointer=checkpointer)
    print("stored:", graph.get_state(old).values)
    print("old thread:", graph.invoke(Command(resume="Dear"), old)["letter"])
    new = {"configurable": {"thread_id": str(uuid4())}}
    graph.invoke({"full_name": "Kim Larsen"}, new)
    print("new thread:", graph.invoke(Command(resume="Dear"), new)["letter"])
