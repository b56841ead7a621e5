from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_swarm import create_handoff_tool, create_swarm

from fake import FakeModel, call


def book_hotel(city: str) -> str:
    """Book a hotel."""
    return f"Booked a hotel in {city}"


def book_flight(city: str) -> str:
    """Book a flight."""
    return f"Booked a flight to {city}"


hotels = create_agent(
    FakeModel(
        call("book_hotel", city="Oslo"),
        call("transfer_to_flights"),
        "Your hotel in Oslo has breakfast.",
    ),
    [book_hotel, create_handoff_tool(agent_name="flights")],
    system_prompt="You book hotels.",
    name="hotels",
)
flights = create_agent(
    FakeModel(
        call("book_flight", city="Oslo"),
        "Hotel and flight are booked.",
        call("transfer_to_hotels"),
    ),
    [book_flight, create_handoff_tool(agent_name="hotels")],
    system_prompt="You book flights.",
    name="flights",
)
swarm = create_swarm([hotels, flights], default_active_agent="hotels")
graph = swarm.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "trip"}}

for question in ["A hotel and a flight to Oslo, please.", "Does the hotel have breakfast?"]:
    result = graph.invoke({"messages": [{"role": "user", "content": question}]}, config)
    print(f"{result['active_agent']}: {result['messages'][-1].content}")
