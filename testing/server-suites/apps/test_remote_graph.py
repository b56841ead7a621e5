"""RemoteGraph of the Python package langgraph, as a node of a local graph, against our server.

The remote graph is `nested`, whose subgraph asks a question.
"""

import os
import uuid
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command, interrupt
from langgraph_sdk import get_sync_client

URL = os.environ["SERVER_URL"]
QUESTION = {"q": "child?"}


class Outer(TypedDict, total=False):
    n: int
    asked: Any
    told: Any


def local_graph(node):
    """Builds a graph whose second node is the remote graph, or calls it."""
    graph = StateGraph(Outer)
    graph.add_node("before", lambda state: {"n": 0})
    graph.add_node("remote", node)
    graph.add_node("after", lambda state: {"told": state["asked"]})
    graph.add_edge(START, "before")
    graph.add_edge("before", "remote")
    graph.add_edge("remote", "after")
    graph.add_edge("after", END)
    return graph.compile(checkpointer=InMemorySaver())


@pytest.fixture
def remote():
    return RemoteGraph("nested", url=URL)


@pytest.fixture
def config():
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


def test_a_question_of_the_remote_subgraph_stops_the_local_graph(remote, config):
    graph = local_graph(remote)
    result = graph.invoke({}, config)
    [question] = result["__interrupt__"]
    assert question.value == QUESTION

    local = graph.get_state(config)
    assert local.next == ("remote",)
    assert [question.value for question in local.interrupts] == [QUESTION]

    # The remote graph runs on a thread of the same id, and waits there too.
    there = remote.get_state(config)
    assert there.next == ("sub",)
    [task] = there.tasks
    assert [(asked.id, asked.value) for asked in task.interrupts] == [(question.id, QUESTION)]
    assert there.values == {"n": 1, "log": ["p1"]}


def test_events_of_the_remote_graph_come_in_the_local_stream(remote, config):
    graph = local_graph(remote)
    parts = list(graph.stream({}, config, stream_mode="updates", subgraphs=True))
    shown = [([place.split(":")[0] for place in place], update) for place, update in parts]
    assert shown[0] == ([], {"before": {"n": 0}})
    assert shown[1] == (["remote"], {"p1": {"n": 1, "log": ["p1"]}})
    assert shown[2] == (["remote", "sub"], {"c1": {"n": 11}})
    places, asked = shown[3]
    assert places == ["remote", "sub"]
    assert [question["value"] for question in asked["__interrupt__"]] == [QUESTION]
    assert [question.value for question in shown[-1][1]["__interrupt__"]] == [QUESTION]


def test_a_node_passes_the_question_on_and_the_answer_back(remote, config):
    # The remote thread is the node's own. RemoteGraph as a node does not pass answers on, with any server.
    threads = get_sync_client(url=URL).threads
    thread = threads.create()["thread_id"]
    there = {"configurable": {"thread_id": thread}}

    def ask_remote(state: Outer):
        # This node runs from the start again when its answer comes.
        if threads.get(thread)["status"] == "idle":
            remote.invoke({"n": state["n"]}, there)
        [task] = remote.get_state(there).tasks
        [question] = task.interrupts
        answer = interrupt(question.value)
        result = remote.invoke(Command(resume={question.id: answer}), there)
        return {"n": result["n"], "asked": result["asked"]}

    graph = local_graph(ask_remote)
    stopped = graph.invoke({}, config)
    assert [question.value for question in stopped["__interrupt__"]] == [QUESTION]

    ended = graph.invoke(Command(resume="blue"), config)
    assert ended == {"n": 11, "asked": "blue", "told": "blue"}
    state = remote.get_state(there)
    assert state.next == ()
    assert state.values == {"n": 11, "asked": "blue", "log": ["p1", "p2"]}


def test_an_answer_at_the_remote_graph_itself(remote, config):
    local_graph(remote).invoke({}, config)
    ended = remote.invoke(Command(resume="green"), config)
    assert ended == {"n": 11, "asked": "green", "log": ["p1", "p2"]}
    assert remote.get_state(config).next == ()


def test_without_a_local_graph_the_question_is_in_the_result(remote, config):
    try:
        result = remote.invoke({"n": 0}, config)
    except GraphInterrupt:
        pytest.fail("only a node of a local graph raises the question")
    assert [question["value"] for question in result["__interrupt__"]] == [QUESTION]
