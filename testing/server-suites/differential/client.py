"""Calls a server and keeps what it answers, as it is."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import httpx

# Headers that clients read. Others are the web server's own.
HEADERS = ("content-type", "location", "content-location", "cache-control", "x-pagination-next", "x-pagination-total")
STREAM_TYPE = "text/event-stream"
# How long a stream may take. One that never ends is a difference, not a reason to wait forever.
STREAM_SECONDS = 30.0


def sse_events(lines) -> Any:
    """Yields the events of a stream as objects with `event`, `data` and, if the server sent one, `id`."""
    event: dict[str, Any] = {}
    for line in lines:
        if line == "":
            if event:
                yield event
            event = {}
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            event["data"] = json.loads(value) if value else None
        elif field in ("event", "id"):
            event[field] = value
    if event:
        yield event


class Recorder:
    """One script's calls against one server, in order."""

    def __init__(self, base_url: str):
        self.http = httpx.Client(base_url=base_url, timeout=STREAM_SECONDS, trust_env=False)
        self.calls: list[dict[str, Any]] = []

    def close(self) -> None:
        self.http.close()

    def call(self, method: str, path: str, body: Any = None, query: Any = None, headers: Any = None, note: str = "") -> Any:
        """Sends a request and records the answer. Returns the body, or the list of events of a stream."""
        kept = {"call": note or f"{method} {path.split('?')[0]}"}
        self.calls.append(kept)
        request: dict[str, Any] = {"params": query, "headers": headers}
        if body is not None:
            request["json"] = body
        started = time.monotonic()
        with self.http.stream(method, path, **request) as response:
            kept["status"] = response.status_code
            kept["headers"] = {name: response.headers[name] for name in HEADERS if name in response.headers}
            if response.headers.get("content-type", "").startswith(STREAM_TYPE):
                kept["events"] = []
                try:
                    for event in sse_events(response.iter_lines()):
                        kept["events"].append(event)
                        if time.monotonic() - started > STREAM_SECONDS:
                            kept["events"].append({"event": "the stream did not end"})
                            break
                except httpx.TimeoutException:
                    kept["events"].append({"event": "the stream did not end"})
                return kept["events"]
            text = response.read().decode()
        try:
            kept["body"] = json.loads(text) if text else None
        except ValueError:
            kept["body"] = text
        return kept["body"]

    def last(self) -> dict[str, Any]:
        return self.calls[-1]


class ProtocolStream:
    """An open `POST /threads/{id}/stream/events`, read until a run on the root has ended."""

    ENDS = ("completed", "failed", "interrupted")

    def __init__(self, base_url: str, thread: str, body: Any):
        self.events: list[dict[str, Any]] = []
        self.is_open = threading.Event()
        self.seen_ends = 0
        self.changed = threading.Condition()
        self.must_stop = False
        self.reader = threading.Thread(target=self._read, args=(base_url, thread, body), daemon=True)
        self.reader.start()
        self.is_open.wait(10)

    def _read(self, base_url: str, thread: str, body: Any) -> None:
        try:
            with httpx.Client(base_url=base_url, timeout=STREAM_SECONDS, trust_env=False) as http:
                with http.stream("POST", f"/threads/{thread}/stream/events", json=body) as response:
                    self.is_open.set()
                    self._collect(response)
        except httpx.TimeoutException:
            pass
        finally:
            self.is_open.set()
            with self.changed:
                self.seen_ends = 1_000
                self.changed.notify_all()

    def _collect(self, response) -> None:
        started = time.monotonic()
        for event in sse_events(response.iter_lines()):
            if self.must_stop or time.monotonic() - started > STREAM_SECONDS:
                return
            with self.changed:
                self.events.append(event)
                if self._is_end(event):
                    self.seen_ends += 1
                self.changed.notify_all()

    def _is_end(self, event: dict[str, Any]) -> bool:
        if event.get("event") != "lifecycle":
            return False
        params = event["data"]["params"]
        return params["namespace"] == [] and params["data"].get("event") in self.ENDS

    def wait_for_end(self, number: int, settle: float = 0.7) -> None:
        """Waits until the root has ended for the nth time, and a moment longer for what follows."""
        with self.changed:
            self.changed.wait_for(lambda: self.seen_ends >= number, timeout=STREAM_SECONDS)
        time.sleep(settle)

    def close(self) -> list[dict[str, Any]]:
        # Later events belong to nobody; the thread ends with the process.
        self.must_stop = True
        with self.changed:
            return list(self.events)
