from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from fake import FakeModel


class State(MessagesState):
    kind: str
    outcome: str


def classify(state: State) -> dict:
    return {"kind": "refund" if "refund" in state["messages"][-1].text else "question"}


def route(state: State) -> Literal["approve", "answer"]:
    return "approve" if state["kind"] == "refund" else "answer"


def approve(state: State) -> dict:
    return {"outcome": "refunded" if interrupt("Refund?") else "refused"}


def build(model: BaseChatModel) -> CompiledStateGraph:
    def answer(state: State) -> dict:
        return {"outcome": model.invoke(state["messages"]).text}

    builder = StateGraph(State)
    builder.add_node(classify)
    builder.add_node(approve)
    builder.add_node(answer)
    builder.add_edge(START, "classify")
    builder.add_conditional_edges("classify", route)
    builder.add_edge("approve", END)
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=InMemorySaver())


CONFIG = {"configurable": {"thread_id": "test"}}


def test_node():
    state = {"messages": [HumanMessage("I want a refund")]}
    assert classify(state) == {"kind": "refund"}
    assert route({"kind": "question"}) == "answer"


def test_graph_with_a_fake_model():
    graph = build(FakeModel("At nine."))
    result = graph.invoke({"messages": [HumanMessage("When do you open?")]}, CONFIG)
    assert result["outcome"] == "At nine."
    nexts = [snapshot.next for snapshot in graph.get_state_history(CONFIG)]
    assert nexts == [(), ("answer",), ("classify",), ("__start__",)]


def test_interrupted_graph():
    graph = build(FakeModel())
    paused = graph.invoke({"messages": [HumanMessage("A refund, please")]}, CONFIG)
    assert [i.value for i in paused["__interrupt__"]] == ["Refund?"]
    assert graph.get_state(CONFIG).next == ("approve",)
    assert graph.invoke(Command(resume=True), CONFIG)["outcome"] == "refunded"
