from dataclasses import dataclass

from langchain_core.messages import SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from fake import FakeModel

WORDS = ["food", "eat", "nuts", "city", "live", "travel"]


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(word in text.lower()) for word in WORDS] for text in texts]


@dataclass
class Context:
    user: str


model = FakeModel(by=lambda messages: f"I know: {messages[0].content}")


def answer(state: MessagesState, runtime: Runtime[Context]) -> dict:
    memories = (runtime.context.user, "memories")
    question = state["messages"][-1]
    found = runtime.store.search(memories, query=question.text, limit=1)
    known = "; ".join(item.value["text"] for item in found)
    reply = model.invoke([SystemMessage(known or "nothing"), question])
    runtime.store.put(memories, question.id, {"text": question.text})
    return {"messages": [reply]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node(answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
index = {"embed": embed, "dims": len(WORDS), "fields": ["text"]}
graph = builder.compile(store=InMemoryStore(index=index))

for user, text in [
    ("ann", "I live in a city by the sea."),
    ("ann", "I cannot eat nuts."),
    ("ann", "Which food can I eat?"),
    ("bob", "Which food can I eat?"),
]:
    message = {"role": "user", "content": text}
    result = graph.invoke({"messages": [message]}, context=Context(user))
    print(f"{user}: {text} -> {result['messages'][-1].text}")
