from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field, ValidationError

from fake import FakeModel, call


class Ticket(BaseModel):
    """A ticket for the help desk."""

    title: str
    priority: Literal["low", "high"]
    seats: int = Field(ge=1)


class State(TypedDict):
    mail: str
    ticket: Ticket


model = FakeModel(
    call("Ticket", title="Printer is on fire", priority="urgent", seats=0),
    Ticket(title="Printer is on fire", priority="high", seats=3),
)
extractor = model.with_structured_output(Ticket)


def extract(state: State) -> dict:
    messages = [("user", f"Make a ticket of this mail: {state['mail']}")]
    try:
        ticket = extractor.invoke(messages)
    except ValidationError as error:
        print("retries after:", [problem["msg"] for problem in error.errors()])
        messages.append(("user", f"The last reply was not valid: {error}. Try again."))
        ticket = extractor.invoke(messages)
    return {"ticket": ticket}


builder = StateGraph(State)
builder.add_node(extract)
builder.add_edge(START, "extract")
builder.add_edge("extract", END)
graph = builder.compile()

print(repr(graph.invoke({"mail": "Help, the printer burns! Three of us wait."})["ticket"]))
