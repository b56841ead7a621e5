"""The graphs of the workloads, as LangGraph's documentation writes them."""

import operator
import random
import string
from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt

NODES = 20
BEGINNING = {"messages": [], "step": 0}

# Random letters, so that no compression hides what a store keeps; made once, for words are not what is measured.
_letters = random.Random(7)
MESSAGES = ["".join(_letters.choices(string.ascii_letters + string.digits, k=200)) for _ in range(512)]


class Talk(TypedDict):
    messages: Annotated[list, add_messages]
    step: int


def _append(messages, writes):
    return messages + [message for write in writes for message in write]


class DeltaTalk(TypedDict):
    """With the opt-in channel that stores writes in place of the whole list."""

    messages: Annotated[list, DeltaChannel(_append)]
    step: int


def step(state):
    message = AIMessage(MESSAGES[state["step"] % len(MESSAGES)])
    return {"messages": [message], "step": state["step"] + 1}


async def step_async(state):
    return step(state)


def chain(saver, node=step):
    graph = StateGraph(Talk)
    names = [f"n{at}" for at in range(NODES)]
    for name in names:
        graph.add_node(name, node)
    for name, following in zip([START, *names], [*names, END]):
        graph.add_edge(name, following)
    return graph.compile(checkpointer=saver)


def loop(saver, turns, channel):
    graph = StateGraph(DeltaTalk if channel == "delta" else Talk)
    graph.add_node("planner", step)
    graph.add_node("tool", step)
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "tool")
    graph.add_conditional_edges("tool", lambda state: END if state["step"] >= 2 * turns else "planner")
    return graph.compile(checkpointer=saver)


class Fan(TypedDict):
    out: Annotated[list, operator.add]
    total: int


def fan_out(saver, branches):
    graph = StateGraph(Fan)
    graph.add_node("split", lambda state: {})
    graph.add_node("branch", lambda state: {"out": [state["i"]]})
    graph.add_node("join", lambda state: {"total": len(state["out"])})
    graph.add_edge(START, "split")
    graph.add_conditional_edges("split", lambda state: [Send("branch", {"i": i}) for i in range(branches)], ["branch"])
    graph.add_edge("branch", "join")
    graph.add_edge("join", END)
    return graph.compile(checkpointer=saver)


def _ask(state):
    answer = interrupt({"question": "approve?"})
    return {"messages": [AIMessage(str(answer))], "step": state["step"] + 1}


def approval(saver):
    graph = StateGraph(Talk)
    graph.add_node("draft", step)
    graph.add_node("ask", _ask)
    graph.add_node("done", step)
    for name, following in zip([START, "draft", "ask", "done"], ["draft", "ask", "done", END]):
        graph.add_edge(name, following)
    return graph.compile(checkpointer=saver)
