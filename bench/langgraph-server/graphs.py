"""The graph that the servers run: five nodes, each of which emits its number, counts and writes a line."""

import operator
from typing import Annotated, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class Chain(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


def node(number: int):
    # Asynchronous, so that no server needs a thread for it.
    async def step(state: Chain):
        get_stream_writer()({"at": number})
        return {"n": state.get("n", 0) + 1, "log": [f"s{number}"]}

    return step


LENGTH = 5
builder = StateGraph(Chain)
for at in range(LENGTH):
    builder.add_node(f"s{at}", node(at))
    builder.add_edge(START if at == 0 else f"s{at - 1}", f"s{at}")
builder.add_edge(f"s{LENGTH - 1}", END)
chain = builder.compile(name="chain")
