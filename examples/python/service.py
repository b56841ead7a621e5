import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

import aiosqlite
import uvicorn
from fastapi import Body, FastAPI, Header, HTTPException
from fastapi.encoders import jsonable_encoder
from fastapi.sse import EventSourceResponse, ServerSentEvent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, StateSnapshot, interrupt


class Refund(TypedDict):
    amount: int
    receipt: str | None


async def pay(refund: Refund, config: RunnableConfig) -> dict:
    approved = interrupt(f"Refund {refund['amount']}?")
    key = f"{config['configurable']['thread_id']}/pay"
    return {"receipt": f"paid under {key}" if approved else None}


builder = StateGraph(Refund)
builder.add_node(pay)
builder.add_edge(START, "pay")
builder.add_edge("pay", END)

running: dict[str, asyncio.Task] = {}
claim = asyncio.Lock()


def thread(id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": id}}


async def record(id: str, event: Any) -> None:
    data = json.dumps(jsonable_encoder(event))
    await app.state.db.execute("INSERT INTO events (refund, data) VALUES (?, ?)", (id, data))
    await app.state.db.commit()


async def run(id: str, input: dict | Command | None) -> None:
    try:
        async for part in app.state.graph.astream(input, thread(id), stream_mode="updates"):
            await record(id, part)
    except Exception as error:
        await record(id, {"error": repr(error)})
    finally:
        del running[id]


async def begin(id: str, input: dict | Command, ready: Callable[[StateSnapshot], bool]) -> None:
    async with claim:
        snapshot = await app.state.graph.aget_state(thread(id))
        if id in running or not ready(snapshot):
            raise HTTPException(409, "The refund does not wait for this.")
        running[id] = asyncio.create_task(run(id, input))


async def recover(checkpointer: AsyncSqliteSaver) -> None:
    ids = {found.config["configurable"]["thread_id"] async for found in checkpointer.alist(None)}
    for id in ids:
        snapshot = await app.state.graph.aget_state(thread(id))
        writes = (await checkpointer.aget_tuple(thread(id))).pending_writes
        # A question stays among the interrupts until its answered node has finished.
        is_answered = any(channel == "__resume__" for _, channel, _ in writes)
        if snapshot.next and (is_answered or not snapshot.interrupts):
            running[id] = asyncio.create_task(run(id, None))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with aiosqlite.connect("service_python.db") as app.state.db:
        columns = "id INTEGER PRIMARY KEY AUTOINCREMENT, refund TEXT, data TEXT"
        await app.state.db.execute(f"CREATE TABLE IF NOT EXISTS events ({columns})")
        checkpointer = AsyncSqliteSaver(app.state.db)
        app.state.graph = builder.compile(checkpointer=checkpointer)
        await recover(checkpointer)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/refunds/{id}", status_code=202)
async def start(id: str, amount: Annotated[int, Body()]) -> None:
    await begin(id, {"amount": amount}, lambda snapshot: not snapshot.next)


@app.post("/refunds/{id}/answers/{interrupt_id}", status_code=202)
async def answer(id: str, interrupt_id: str, yes: Annotated[bool, Body()]) -> None:
    # An answer by id, resume={interrupt_id: yes}, would not be stored before the node has run.
    command = Command(resume=yes)
    await begin(id, command, lambda found: interrupt_id in {i.id for i in found.interrupts})


@app.get("/refunds/{id}")
async def show(id: str) -> dict | None:
    snapshot = await app.state.graph.aget_state(thread(id))
    if not snapshot.created_at:
        return None
    outcome = "failed" if snapshot.next else "finished"
    outcome = "running" if id in running else "paused" if snapshot.interrupts else outcome
    return {"outcome": outcome, "interrupts": snapshot.interrupts, "state": snapshot.values}


@app.get("/refunds/{id}/events", response_class=EventSourceResponse)
async def events(
    id: str, last_event_id: Annotated[int, Header()] = 0
) -> AsyncIterable[ServerSentEvent]:
    query = "SELECT id, data FROM events WHERE refund = ? AND id > ? ORDER BY id"
    while True:
        for last_event_id, data in await app.state.db.execute_fetchall(query, (id, last_event_id)):
            yield ServerSentEvent(raw_data=data, id=str(last_event_id))
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    uvicorn.run(app, port=8080, log_level="warning")
