from typing import TypedDict

from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy


class State(TypedDict):
    failures: int
    receipt: str


attempts = 0


def charge(state: State) -> dict:
    global attempts
    attempts += 1
    if attempts <= state["failures"]:
        raise ConnectionError(f"bank is away, attempt {attempts}")
    return {"receipt": f"charged at attempt {attempts}"}


def charge_failed(state: State, error: NodeError) -> Command:
    return Command(goto="queue", update={"receipt": f"{error.node} failed: {error.error}"})


def queue(state: State) -> dict:
    return {"receipt": f"queued for a person, {state['receipt']}"}


policy = RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=ConnectionError)
builder = StateGraph(State)
builder.add_node(charge, retry_policy=policy, error_handler=charge_failed)
builder.add_node(queue)
builder.add_edge(START, "charge")
builder.add_edge("charge", END)
builder.add_edge("queue", END)
graph = builder.compile()

for failures in [2, 5]:
    attempts = 0
    print(graph.invoke({"failures": failures})["receipt"])
