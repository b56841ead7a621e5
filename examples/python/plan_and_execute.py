from operator import add
from typing import Annotated, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

from fake import FakeModel


class Plan(BaseModel):
    """Steps to follow, in order."""

    steps: list[str]


class Act(BaseModel):
    """Either the remaining steps, or the final answer when no more steps are needed."""

    steps: list[str] = Field(default_factory=list)
    answer: str | None = None


class State(TypedDict):
    task: str
    plan: list[str]
    past: Annotated[list[tuple[str, str]], add]
    answer: str | None


model = FakeModel(
    Plan(steps=["find the winner", "find the home town"]),
    "The winner is the player in lane 4.",
    Act(steps=["find the home town of the player in lane 4"]),
    "The home town is Turku.",
    Act(answer="The winner comes from Turku."),
)
planner = model.with_structured_output(Plan)
replanner = model.with_structured_output(Act)


def plan(state: State) -> dict:
    return {"plan": planner.invoke(f"Make a plan for: {state['task']}").steps}


def execute(state: State) -> dict:
    step = state["plan"][0]
    reply = model.invoke(f"Done so far: {state['past']}. Now do: {step}")
    return {"past": [(step, reply.content)]}


def replan(state: State) -> dict:
    act = replanner.invoke(
        f"Task: {state['task']}. Plan: {state['plan']}. Done: {state['past']}. What is left?"
    )
    return {"plan": act.steps, "answer": act.answer}


def route(state: State) -> Literal["execute", "__end__"]:
    return END if state["answer"] else "execute"


builder = StateGraph(State)
builder.add_node(plan)
builder.add_node(execute)
builder.add_node(replan)
builder.add_edge(START, "plan")
builder.add_edge("plan", "execute")
builder.add_edge("execute", "replan")
builder.add_conditional_edges("replan", route)
graph = builder.compile()

result = graph.invoke({"task": "Where does the winner come from?"}, {"recursion_limit": 20})
for step, outcome in result["past"]:
    print(f"{step}: {outcome}")
print(result["answer"])
