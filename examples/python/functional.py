from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

from fake import FakeModel

model = FakeModel("Cats sleep a lot.")


@task
def write(topic: str) -> str:
    return model.invoke(f"Write about {topic}").text


@task
def publish(text: str) -> str:
    return f"Published: {text}"


@entrypoint(checkpointer=InMemorySaver())
def essay(topic: str) -> str:
    text = write(topic).result()
    correction = interrupt({"text": text, "question": "Any correction?"})
    return publish(correction or text).result()


config = {"configurable": {"thread_id": "essay"}}
paused = essay.invoke("cats", config)
print("asks:", paused["__interrupt__"][0].value)
print(essay.invoke(Command(resume="Cats sleep 15 hours a day."), config))
