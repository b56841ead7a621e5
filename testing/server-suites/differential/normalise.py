"""Takes out of answers what differs between two runs of the same server: ids, times, and keys about the deployment."""

from __future__ import annotations

import re
from typing import Any

# Keys that say which deployment answered, or what only Python's tracing knows. They are dropped wherever they occur.
DROPPED = frozenset({
    # the reference's versions, plan and address
    "langgraph_version", "langgraph_api_version", "langgraph_plan", "langgraph_host", "langgraph_api_url",
    # its users and requests
    "langgraph_auth_user", "langgraph_auth_user_id", "langgraph_auth_permissions", "langgraph_request_id", "user_id",
    "__request_start_time_ms__", "__after_seconds__", "__pregel_node_finished", "langsmith_session_name",
    # LangSmith's and LangChain's own
    "ls_integration", "ls_provider", "ls_model_type", "ls_model_name", "lc_versions", "lc_agent_name",
})

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TASK = re.compile(rf"(?<=:)({UUID})")
THREAD = re.compile(rf"(?<=/threads/)({UUID})")
RUN = re.compile(rf"(?<=/runs/)({UUID})")
# A message's id is that of a call of a model in the reference, and that of a task in ours.
MESSAGE = re.compile(rf"(?:lc_run--|run-)?{UUID}(?:-\d+)?|[0-9a-f]{{32}}-\d+")
ANY = re.compile(rf"lc_run--{UUID}(?:-\d+)?|{UUID}|\b[0-9a-f]{{32}}(?:-\d+)?\b")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)?")
# Objects that map namespaces to ids of checkpoints.
CHECKPOINTS = {"checkpoint_map": "checkpoint_id", "parents": "checkpoint_id"}
MESSAGE_TYPES = {"human", "ai", "system", "tool", "remove", "AIMessageChunk", "user", "assistant"}


class Names:
    """Names for ids, by order of appearance within their kind."""

    def __init__(self, kept: set[str]):
        self.kept = kept
        self.names: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self.kinds: dict[str, str] = {}

    def name(self, kind: str, raw: str) -> str:
        if raw in self.kept:
            return raw
        known = self.names.get((kind, raw))
        if known is None:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            known = self.names[kind, raw] = f"{kind}-{self.counts[kind]}"
            self.kinds.setdefault(raw, kind)
        return known

    def any_name(self, raw: str) -> str:
        return self.name(self.kinds.get(raw, "id"), raw)

    def text(self, text: str) -> str:
        text = THREAD.sub(lambda m: self.name("thread", m[1]), text)
        text = RUN.sub(lambda m: self.name("run", m[1]), text)
        text = TASK.sub(lambda m: self.name("task", m[1]), text)
        text = ANY.sub(lambda m: self.any_name(m[0]), text)
        return TIME.sub("TIME", text)


def kind_of(key: str, parent: dict[str, Any]) -> str | None:
    """Returns what the id under a key is of."""
    if key in ("thread_id",):
        return "thread"
    if key in ("run_id", "parent_ids"):
        return "run"
    if key in ("checkpoint_id", "parent_checkpoint_id"):
        return "checkpoint"
    if key == "assistant_id":
        return "assistant"
    if key == "interrupt_id":
        return "interrupt"
    if key == "id" and "value" in parent:
        return "interrupt"
    if key == "id" and (parent.get("type") in MESSAGE_TYPES or "role" in parent):
        return "message"
    if key == "id" and parent.get("event") in ("message-start", "message-finish"):
        return "message"
    if key == "id" and "name" in parent and ("interrupts" in parent or "triggers" in parent):
        return "task"
    return None


def walk(value: Any, key: str, parent: dict[str, Any], names: Names) -> Any:
    if isinstance(value, dict):
        return {
            key_text(inner, names, value): walk(value[inner], CHECKPOINTS.get(key, inner), value, names)
            for inner in sorted(value)
            if inner not in DROPPED
        }
    if isinstance(value, list):
        return [walk(item, key, parent, names) for item in value]
    if isinstance(value, str):
        kind = kind_of(key, parent)
        if kind == "message" and MESSAGE.fullmatch(value):
            return names.name(kind, value)
        if kind and ANY.fullmatch(value):
            return names.name(kind, value)
        return names.text(value)
    if key in ("timestamp", "__request_start_time_ms__") and isinstance(value, int | float):
        return 0
    return value


def key_text(key: str, names: Names, parent: dict[str, Any]) -> str:
    # The keys of `messages/metadata` are ids of messages, those of a thread's `interrupts` ids of tasks.
    if MESSAGE.fullmatch(key):
        value = parent[key]
        is_metadata = isinstance(value, dict) and "metadata" in value
        return names.name("message" if is_metadata else "task", key)
    return names.text(key)


def normalise(calls: list[dict[str, Any]], kept: set[str]) -> list[dict[str, Any]]:
    """Returns the calls of one script without what differs between two runs. `kept` are ids that are the same everywhere."""
    names = Names(kept)
    return [walk(call, "", {}, names) for call in calls]


NAMED = re.compile(r"\b(thread|run|checkpoint|assistant|interrupt|message|task|id)-(\d+)\b")


def renumber(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Numbers ids again, by order of appearance in calls from which something was taken out."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def rename(match: re.Match[str]) -> str:
        if match[0] not in names:
            counts[match[1]] = counts.get(match[1], 0) + 1
            names[match[0]] = f"{match[1]}-{counts[match[1]]}"
        return names[match[0]]

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {NAMED.sub(rename, key): renamed(value[key]) for key in sorted(value)}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        return NAMED.sub(rename, value) if isinstance(value, str) else value

    return [renamed(call) for call in calls]
