from operator import add
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from fake import FakeModel


class State(TypedDict):
    topic: str
    audience: str
    subjects: list[str]
    jokes: Annotated[list[str], add]
    best: str


class Subject(TypedDict):
    subject: str


model = FakeModel(by=lambda messages: f"A joke about {messages[-1].content.split()[-1]}")


def list_subjects(state: State) -> dict:
    return {"subjects": [f"{kind}-{state['topic']}" for kind in ["lazy", "hungry", "angry"]]}


def look_up_audience(state: State) -> dict:
    return {"audience": "children"}


def write_joke(state: Subject) -> dict:
    return {"jokes": [model.invoke(f"Write a joke about {state['subject']}").content]}


def pick_best(state: State) -> dict:
    longest = max(state["jokes"], key=len)
    return {"best": f"{longest}, for {state['audience']}"}


def fan_out(state: State) -> list[Send]:
    return [Send("write_joke", {"subject": subject}) for subject in state["subjects"]]


builder = StateGraph(State)
builder.add_node(list_subjects)
builder.add_node(look_up_audience)
builder.add_node(write_joke)
builder.add_node(pick_best)
builder.add_edge(START, "list_subjects")
builder.add_edge(START, "look_up_audience")
builder.add_conditional_edges("list_subjects", fan_out, ["write_joke"])
# The two paths have one and two steps; pick_best waits for both.
builder.add_edge(["write_joke", "look_up_audience"], "pick_best")
builder.add_edge("pick_best", END)
graph = builder.compile()

result = graph.invoke({"topic": "cats"})
print(result["jokes"])
print(result["best"])
