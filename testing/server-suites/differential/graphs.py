"""The graphs of the set `lab` for the reference server. `src/graphs/lab` has the same graphs for ours."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt


def printed(value: Any) -> str:
    """Prints an answer with the fields of objects in alphabetical order, as ours does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {printed(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(printed(item) for item in value) + "]"
    return repr(value)


# `agent`: a chat with a model that streams one answer, word by word.


class WordModel(BaseChatModel):
    text: str = "Hello there, dear world."

    @property
    def _llm_type(self) -> str:
        return "words"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self.text))])

    def _stream(self, messages, stop=None, run_manager=None, **options):
        for index, word in enumerate(self.text.split(" ")):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word if index == 0 else f" {word}"))

    async def _astream(self, messages, stop=None, run_manager=None, **options):
        for chunk in self._stream(messages):
            yield chunk


async def chat(state: MessagesState):
    return {"messages": [await WordModel().ainvoke(state["messages"])]}


agent = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat").add_edge("chat", END).compile(name="agent")


# `inbox` and `both`: a question in the form that Agent Inbox shows, and in one that every web app shows.


class Inbox(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]
    log: Annotated[list[str], operator.add]


ARGS = {"to": "bob@example.com", "n": 3, "body": "hi"}
ALLOWED = {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True}


def ask(state: Inbox):
    action = {"action": "send_email", "args": ARGS}
    answer = interrupt([{"action_request": action, "config": ALLOWED, "description": "# Send?\nPlease."}])
    return {"log": [printed(answer)]}


def after(state: Inbox):
    return {"log": ["after"]}


def ask_both(state: Inbox):
    answer = interrupt({
        "action_request": {"action": "send_email", "args": ARGS},
        "config": ALLOWED,
        "description": "# Send?",
        "action_requests": [{"name": "send_email", "args": ARGS, "arguments": ARGS, "description": "# Send?"}],
        "review_configs": [{"action_name": "send_email", "allowed_decisions": ["approve", "edit", "reject"]}],
    })
    return {"log": [printed(answer)], "messages": [AIMessage(content="answered " + printed(answer), id="answered")]}


inbox = (
    StateGraph(Inbox)
    .add_node("ask", ask)
    .add_node("after", after)
    .add_edge(START, "ask")
    .add_edge("ask", "after")
    .add_edge("after", END)
    .compile(name="inbox")
)
both = StateGraph(Inbox).add_node("ask", ask_both).add_edge(START, "ask").add_edge("ask", END).compile(name="both")


# `chain`: five nodes, each of which emits its number, counts and writes a line.


class Chain(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


def numbered(number: int):
    def step(state: Chain):
        get_stream_writer()({"at": number})
        return {"n": state.get("n", 0) + 1, "log": [f"s{number}"]}

    return step


builder = StateGraph(Chain)
for number in range(5):
    builder.add_node(f"s{number}", numbered(number))
    builder.add_edge(START if number == 0 else f"s{number - 1}", f"s{number}")
chain = builder.add_edge("s4", END).compile(name="chain")


# `nested`: a subgraph that shares two channels with its parent and asks a person.


class Child(TypedDict):
    n: int
    asked: str


class Parent(TypedDict):
    n: int
    asked: str
    log: Annotated[list[str], operator.add]


child = (
    StateGraph(Child)
    .add_node("c1", lambda state: {"n": state["n"] + 10})
    .add_node("c2", lambda state: {"asked": interrupt({"q": "child?"})})
    .add_edge(START, "c1")
    .add_edge("c1", "c2")
    .add_edge("c2", END)
    .compile(name="child")
)
nested = (
    StateGraph(Parent)
    .add_node("p1", lambda state: {"n": 1, "log": ["p1"]})
    .add_node("sub", child)
    .add_node("p2", lambda state: {"log": ["p2"]})
    .add_edge(START, "p1")
    .add_edge("p1", "sub")
    .add_edge("sub", "p2")
    .add_edge("p2", END)
    .compile(name="nested")
)


# `fan`: a task for each item, all in one superstep. The nodes are asynchronous, so they end in the order in which they start.


class Fan(TypedDict):
    items: list[int]
    out: Annotated[list[int], operator.add]


async def plan(state: Fan):
    return {}


async def work(item):
    return {"out": [item["i"] * 2]}


def spread(state: Fan):
    return [Send("work", {"i": item}) for item in state["items"]]


fan = (
    StateGraph(Fan)
    .add_node("plan", plan)
    .add_node("work", work)
    .add_edge(START, "plan")
    .add_conditional_edges("plan", spread, ["work"])
    .add_edge("work", END)
    .compile(name="fan")
)


# `delay`: a node that waits and may fail, and one after it.


class Delay(TypedDict):
    ms: int
    fail: bool
    log: Annotated[list[str], operator.add]


async def slow(state: Delay):
    await asyncio.sleep(state.get("ms", 0) / 1000)
    if state.get("fail"):
        raise ValueError("kaboom")
    return {"log": ["slow"]}


def done(state: Delay):
    return {"log": ["done"]}


delay = (
    StateGraph(Delay)
    .add_node("slow", slow)
    .add_node("done", done)
    .add_edge(START, "slow")
    .add_edge("slow", "done")
    .add_edge("done", END)
    .compile(name="delay")
)


# `hitl`: a model whose tool calls a person reviews, as LangChain's `HumanInTheLoopMiddleware` asks it. The node has the name of
# the middleware's, with a `-`: names of our nodes have no `.`.

REVIEW = "HumanInTheLoopMiddleware-after_model"


class Reviewed(MessagesState):
    hitl_edited_tool_calls: dict


class MailModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "mail"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        if any(isinstance(message, ToolMessage) for message in messages):
            answer = AIMessage(content="all done")
        else:
            call = {"id": "tc-1", "name": "send_mail", "args": {"to": "bob", "body": "hi", "copies": 2}}
            answer = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def send_mail(to: str, body: str, copies: int = 1) -> str:
    """Send a mail."""
    return f"sent to {to}: {body} x{copies}"


def unanswered(messages) -> list:
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    called = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    return [call for call in called if call["id"] not in answered]


def write(state: Reviewed):
    return {"messages": [MailModel().invoke(state["messages"])]}


def review(state: Reviewed):
    calls = unanswered(state["messages"])
    if not calls:
        return None
    title = "Tool execution requires approval"
    decisions = interrupt({
        "action_requests": [
            {"name": call["name"], "args": call["args"], "description": f"{title}\n\nTool: {call['name']}\nArgs: {call['args']}"}
            for call in calls
        ],
        "review_configs": [
            {"action_name": call["name"], "allowed_decisions": ["approve", "edit", "reject", "respond"]} for call in calls
        ],
    })["decisions"]
    if len(decisions) != len(calls):
        asked = f"({len(decisions)}) does not match number of hanging tool calls ({len(calls)})."
        raise ValueError(f"Number of human decisions {asked}")
    written, edited = [state["messages"][-1]], {}
    for call, decision in zip(calls, decisions, strict=True):
        name, number = call["name"], call["id"]
        if decision["type"] == "edit":
            edited[number] = decision["edited_action"]
        elif decision["type"] == "reject":
            text = f"User rejected the tool call for `{name}` with reason: {decision['message']}"
            result = ToolMessage(content=text, name=name, tool_call_id=number, status="error", id=f"result-{number}")
            written.append(result)
    return {"messages": written, "hitl_edited_tool_calls": edited}


def after_review(state: Reviewed) -> str:
    if unanswered(state["messages"]):
        return "tools"
    return "model" if isinstance(state["messages"][-1], ToolMessage) else END


def run_tools(state: Reviewed):
    results = []
    for call in unanswered(state["messages"]):
        result = send_mail.invoke(call)
        # The reference streams a message without an id before it gives it one.
        result.id = f"result-{call['id']}"
        results.append(result)
    return {"messages": results}


hitl = (
    StateGraph(Reviewed)
    .add_node("model", write)
    .add_node(REVIEW, review)
    .add_node("tools", run_tools)
    .add_edge(START, "model")
    .add_edge("model", REVIEW)
    .add_conditional_edges(REVIEW, after_review, ["tools", "model", END])
    .add_edge("tools", "model")
    .compile(name="hitl")
)
