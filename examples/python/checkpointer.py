import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class FileSaver(BaseCheckpointSaver[int]):
    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def _folder(self, config: RunnableConfig) -> Path:
        thread = quote(config["configurable"]["thread_id"], safe="")
        namespace = quote(config["configurable"].get("checkpoint_ns", ""), safe="")
        return self.root / f"thread-{thread}" / f"namespace-{namespace}"

    def _write(self, path: Path, value: Any) -> None:
        kind, data = self.serde.dumps_typed(value)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{uuid4()}")
        temporary.write_bytes(kind.encode() + b"\n" + data)
        temporary.replace(path)

    def _read(self, path: Path) -> Any:
        kind, data = path.read_bytes().split(b"\n", 1)
        return self.serde.loads_typed((kind.decode(), data))

    def _tuple(self, path: Path) -> CheckpointTuple:
        config, checkpoint, metadata, parent = self._read(path)
        writes = [self._read(write) for write in path.with_suffix(".writes").glob("*.write")]
        writes.sort(key=lambda write: writes_sort_key(*write[:3]))
        pending = [(task_id, channel, value) for _, task_id, _, channel, value in writes]
        return CheckpointTuple(config, checkpoint, metadata, parent, pending)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        pattern = f"{get_checkpoint_id(config) or '*'}.checkpoint"
        newest = max(self._folder(config).glob(pattern), default=None)
        return self._tuple(newest) if newest else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        folder = self._folder(config) if config else self.root
        only = get_checkpoint_id(config) if config else None
        paths = folder.rglob(f"{only or '*'}.checkpoint")
        for path in sorted(paths, key=lambda path: path.stem, reverse=True):
            if before and path.stem >= get_checkpoint_id(before):
                continue
            if limit == 0:
                return
            found = self._tuple(path)
            if all(found.metadata.get(key) == value for key, value in (filter or {}).items()):
                limit = None if limit is None else limit - 1
                yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        keys = {key: config["configurable"][key] for key in ("thread_id", "checkpoint_ns")}
        stored: RunnableConfig = {"configurable": {**keys, "checkpoint_id": checkpoint["id"]}}
        parent_id = get_checkpoint_id(config)
        parent = {"configurable": {**keys, "checkpoint_id": parent_id}} if parent_id else None
        path = self._folder(config) / f"{checkpoint['id']}.checkpoint"
        self._write(path, [stored, checkpoint, get_checkpoint_metadata(config, metadata), parent])
        return stored

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        folder = self._folder(config) / f"{get_checkpoint_id(config)}.writes"
        for position, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, position)
            path = folder / f"{task_id}.{index}.write"
            # Special channels such as errors and interrupts are replaced, others are kept.
            if index < 0 or not path.exists():
                self._write(path, [task_path, task_id, index, channel, value])

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self, config: RunnableConfig | None, **kwargs: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(lambda: [*self.list(config, **kwargs)]):
            yield found

    async def aput(self, *args: Any) -> RunnableConfig:
        return await asyncio.to_thread(self.put, *args)

    async def aput_writes(self, *args: Any) -> None:
        await asyncio.to_thread(self.put_writes, *args)


class State(TypedDict):
    amount: int
    receipt: str


def pay(state: State) -> dict:
    approved = interrupt(f"Refund {state['amount']}?")
    return {"receipt": f"paid {state['amount']}" if approved else "refused"}


builder = StateGraph(State)
builder.add_node(pay)
builder.add_edge(START, "pay")
builder.add_edge("pay", END)
graph = builder.compile(checkpointer=FileSaver(Path("checkpoints.db")))


async def main(thread_id: str, resumes: bool) -> None:
    config = {"configurable": {"thread_id": thread_id}}
    if resumes:
        print("second process:", await graph.ainvoke(Command(resume=True), config))
        print("checkpoints:", len([s async for s in graph.aget_state_history(config)]))
    else:
        paused = await graph.ainvoke({"amount": 40}, config)
        print("first process:", paused["__interrupt__"][0].value)
        subprocess.run([sys.executable, __file__, thread_id], check=True)


asyncio.run(main(sys.argv[1] if sys.argv[1:] else str(uuid4()), bool(sys.argv[1:])))
