"""A chat model without a network: it replays a script. Not counted in the lines of the programs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, PrivateAttr

Reply = str | AIMessage | BaseModel


def call(name: str, **args: Any) -> AIMessage:
    """A reply that calls one tool; also a structured answer, good or bad, of the class so named."""
    tool_call = {"name": name, "args": args, "id": f"call_{uuid4().hex[:8]}", "type": "tool_call"}
    return AIMessage(content="", tool_calls=[tool_call])


class FakeModel(BaseChatModel):
    """Replays `replies` one after another, or asks `replies`, a function of the messages."""

    replies: Sequence[Any] | Callable[[list[BaseMessage]], Any]
    _position: int = PrivateAttr(default=0)

    def __init__(self, *replies: Reply, by: Callable[[list[BaseMessage]], Reply] | None = None):
        super().__init__(replies=by or replies)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        if callable(self.replies):
            reply = self.replies(messages)
        else:
            reply = self.replies[self._position]
            self._position += 1
        if isinstance(reply, BaseModel) and not isinstance(reply, BaseMessage):
            return call(type(reply).__name__, **reply.model_dump())
        return AIMessage(content=reply) if isinstance(reply, str) else reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._next(messages)
        words = str(reply.content).split(" ") if reply.content else []
        chunks = [AIMessageChunk(word if i == 0 else f" {word}") for i, word in enumerate(words)]
        last = AIMessageChunk("", tool_calls=reply.tool_calls, chunk_position="last")
        for message in [*chunks, last]:
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(str(message.content), chunk=chunk)
            yield chunk
