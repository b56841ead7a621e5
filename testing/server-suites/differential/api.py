"""The calls that scripts are made of, against one graph and in one stream mode."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from client import ProtocolStream, Recorder

MODES = ("values", "updates", "messages", "messages-tuple", "custom", "events", "debug", "tasks", "checkpoints")


@dataclass(frozen=True)
class Script:
    """A short sequence of calls. One that streams is run in every mode, with subgraphs and without."""

    name: str
    graph: str
    streams: bool
    body: Callable[["Api"], None]

    def variants(self) -> list["Variant"]:
        if not self.streams:
            return [Variant(self, "values", False)]
        return [Variant(self, mode, subgraphs) for mode in MODES for subgraphs in (False, True)]


@dataclass(frozen=True)
class Variant:
    """A script in one mode."""

    script: Script
    mode: str
    subgraphs: bool

    @property
    def key(self) -> str:
        if not self.script.streams:
            return "once"
        return self.mode + ("+subgraphs" if self.subgraphs else "")


SCRIPTS: list[Script] = []


def script(graph: str, streams: bool = True):
    """Registers a function as a script, by its name."""

    def register(body: Callable[["Api"], None]) -> Callable[["Api"], None]:
        SCRIPTS.append(Script(body.__name__, graph, streams, body))
        return body

    return register


class Api:
    """The calls of one script. Every answer is recorded."""

    def __init__(self, base_url: str, variant: Variant):
        self.base_url = base_url
        self.graph = variant.script.graph
        self.mode = variant.mode
        self.subgraphs = variant.subgraphs
        self.recorder = Recorder(base_url)
        self.thread = ""

    def get(self, path: str, **query: Any) -> Any:
        return self.recorder.call("GET", path, query=query or None, note=f"GET {path}")

    def post(self, path: str, body: Any, **query: Any) -> Any:
        return self.recorder.call("POST", path, body, query=query or None, note=f"POST {path}")

    def send(self, method: str, path: str, body: Any = None, headers: Any = None, **query: Any) -> Any:
        return self.recorder.call(method, path, body, query=query or None, headers=headers, note=f"{method} {path}")

    # Threads

    def create_thread(self, **body: Any) -> str:
        self.thread = self.post("/threads", body)["thread_id"]
        return self.thread

    def new_thread(self) -> str:
        """Chooses an id for a thread that a run creates."""
        self.thread = str(uuid.uuid4())
        return self.thread

    def show_thread(self) -> Any:
        return self.get(f"/threads/{self.thread}")

    def state(self, **query: Any) -> Any:
        return self.get(f"/threads/{self.thread}/state", **query)

    def history(self, **body: Any) -> Any:
        return self.post(f"/threads/{self.thread}/history", {"limit": 50, **body})

    def checkpoints(self) -> list[dict[str, Any]]:
        """Returns the states of the thread, oldest first, without recording the call."""
        answer = self.recorder.http.post(f"/threads/{self.thread}/history", json={"limit": 100})
        return list(reversed(answer.json()))

    def checkpoint_before(self, node: str) -> str:
        """Returns the id of the first checkpoint of which a node is next."""
        for state in self.checkpoints():
            if node in state["next"]:
                return state["checkpoint"]["checkpoint_id"]
        raise LookupError(f"no checkpoint is before `{node}`")

    def update_state(self, values: Any, **body: Any) -> Any:
        return self.post(f"/threads/{self.thread}/state", {"values": values, **body})

    # Runs

    def run_body(self, input: Any, **body: Any) -> dict[str, Any]:
        made = {"assistant_id": self.graph, "stream_mode": [self.mode], "stream_subgraphs": self.subgraphs}
        if input is not None:
            made["input"] = input
        return {**made, **body}

    def stream(self, input: Any = None, **body: Any) -> Any:
        return self.post(f"/threads/{self.thread}/runs/stream", self.run_body(input, **body))

    def resume(self, answer: Any, **body: Any) -> Any:
        return self.stream(command={"resume": answer}, **body)

    def create_run(self, input: Any = None, **body: Any) -> Any:
        return self.post(f"/threads/{self.thread}/runs", self.run_body(input, **body))

    def wait(self, input: Any = None, **body: Any) -> Any:
        return self.post(f"/threads/{self.thread}/runs/wait", self.run_body(input, **body))

    def run(self, run_id: str, rest: str = "", **query: Any) -> Any:
        return self.get(f"/threads/{self.thread}/runs/{run_id}{rest}", **query)

    def settle(self) -> None:
        """Waits until no run of the thread is pending or running. Records nothing."""
        for _ in range(300):
            thread = self.recorder.http.get(f"/threads/{self.thread}").json()
            if thread.get("status") != "busy":
                return
            time.sleep(0.05)

    def wait_until_running(self, run_id: str) -> None:
        for _ in range(300):
            run = self.recorder.http.get(f"/threads/{self.thread}/runs/{run_id}").json()
            if run.get("status") != "pending":
                return
            time.sleep(0.02)

    # The protocol of threads

    def open_events(self, channels: list[str], **body: Any) -> ProtocolStream:
        return ProtocolStream(self.base_url, self.thread, {"channels": channels, **body})

    def command(self, number: int, method: str, **params: Any) -> Any:
        return self.post(f"/threads/{self.thread}/commands", {"id": number, "method": method, "params": params})

    def close_events(self, stream: ProtocolStream) -> None:
        self.recorder.calls.append({"call": "POST /threads/{id}/stream/events", "events": stream.close()})
