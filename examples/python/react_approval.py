from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fake import FakeModel, call


def look_up(order: str) -> str:
    """Look up an order."""
    return f"Order {order}: one kettle, 40 euros, arrived broken"


def refund(order: str, amount: int) -> str:
    """Pay money back for an order."""
    return f"Refunded {amount} euros for {order}"


model = FakeModel(
    call("look_up", order="A-7"),
    call("refund", order="A-7", amount=40),
    "You get 40 euros back.",
)
approval = HumanInTheLoopMiddleware(
    interrupt_on={"refund": {"allowed_decisions": ["approve", "reject"]}}
)

with SqliteSaver.from_conn_string("react_approval.db") as checkpointer:
    agent = create_agent(model, [look_up, refund], middleware=[approval], checkpointer=checkpointer)
    config = {"configurable": {"thread_id": str(uuid4())}}
    question = {"role": "user", "content": "My kettle A-7 arrived broken."}
    paused = agent.invoke({"messages": [question]}, config)
    print("asks:", paused["__interrupt__"][0].value["action_requests"][0]["args"])
    answer = Command(resume={"decisions": [{"type": "approve"}]})
    result = agent.invoke(answer, config)
    print(result["messages"][-2].content)
    print(result["messages"][-1].content)
