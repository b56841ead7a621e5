from langchain.agents import create_agent
from langgraph_supervisor import create_supervisor

from fake import FakeModel, call


def search(query: str) -> str:
    """Search the web."""
    return "Kettles sold: 120 in spring, 80 in summer"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


research = create_agent(
    FakeModel(call("search", query="kettles sold"), "120 in spring and 80 in summer."),
    [search],
    system_prompt="You find facts.",
    name="research",
)
math = create_agent(
    FakeModel(call("add", a=120, b=80), "The sum is 200."),
    [add],
    system_prompt="You compute.",
    name="math",
)
graph = create_supervisor(
    [research, math],
    model=FakeModel(
        call("transfer_to_research"),
        call("transfer_to_math"),
        "200 kettles were sold in the two seasons.",
    ),
    prompt="You manage a research agent and a math agent. Give each what it is good at.",
).compile()

question = {"role": "user", "content": "How many kettles were sold in spring and summer?"}
result = graph.invoke({"messages": [question]})
for message in result["messages"]:
    print(f"{message.name or message.type}: {message.content or message.tool_calls[0]['name']}")
