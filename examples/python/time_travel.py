from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    topic: str
    joke: str


def choose(state: State) -> dict:
    return {"topic": "cats"}


def write(state: State) -> dict:
    return {"joke": f"A joke about {state['topic']}"}


builder = StateGraph(State)
builder.add_node(choose)
builder.add_node(write)
builder.add_edge(START, "choose")
builder.add_edge("choose", "write")
builder.add_edge("write", END)
graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "jokes"}}

print(graph.invoke({}, config)["joke"])
before = next(s for s in graph.get_state_history(config) if s.next == ("write",))
fork = graph.update_state(before.config, {"topic": "dogs"})
print(graph.invoke(None, fork)["joke"])
for snapshot in graph.get_state_history(config):
    metadata = snapshot.metadata
    print(metadata["step"], metadata["source"], snapshot.next, snapshot.values)
