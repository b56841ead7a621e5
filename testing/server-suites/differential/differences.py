"""What our server does otherwise on purpose, and how a comparison takes it out. Everything else that differs fails.

`differences.json` has the list, with reasons. Here are the rules, by name: a difference that no script meets has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from normalise import renumber

Call = dict[str, Any]

DIFFERENCES: dict[str, str] = {
    entry["name"]: entry["text"]
    for entry in json.loads((Path(__file__).parent / "differences.json").read_text(encoding="utf-8"))
}
DIFFERENCES_MAX = 15


def data_of(call: Call) -> list[Any]:
    """Returns the data of all events of a stream."""
    return [event.get("data") for event in call.get("events", [])]


def bodies(call: Call) -> list[dict[str, Any]]:
    """Returns the objects of a body that is an object or a list of them."""
    body = call.get("body")
    listed = body if isinstance(body, list) else [body]
    return [item for item in listed if isinstance(item, dict)]


# Rules for the calls of either server.


def durability(call: Call) -> None:
    for body in bodies(call):
        kwargs = body.get("kwargs")
        if isinstance(kwargs, dict) and kwargs.get("durability") in ("sync", "async"):
            kwargs["durability"] = "default"


def event_ids(call: Call) -> None:
    for event in call.get("events", []):
        event.pop("id", None)
    for data in data_of(call):
        if isinstance(data, dict) and data.get("type") == "event":
            data.pop("seq", None)
            data.pop("event_id", None)
    for body in bodies(call):
        if isinstance(body.get("meta"), dict):
            body["meta"].pop("applied_through_seq", None)


def total(call: Call) -> None:
    call.get("headers", {}).pop("x-pagination-total", None)


def error_texts(call: Call) -> None:
    is_text = isinstance(call.get("body"), str) or any("detail" in body for body in bodies(call))
    if call.get("status", 200) >= 400 and is_text:
        call["body"] = {"detail": "TEXT"}
        call["headers"] = {}
    for body in bodies(call):
        if body.get("type") == "error" and isinstance(body.get("message"), str):
            body["message"] = "TEXT"
    for data in [*data_of(call), *(body.get("error") for body in bodies(call))]:
        # Names of errors that servers raise. What a node raises is the same on both.
        if isinstance(data, dict) and data.get("error") in ("GraphRecursionError", "InvalidUpdateError", "UserInterrupt", "UserRollback"):
            data["message"] = "TEXT"


def more(call: Call) -> None:
    if call["call"].startswith("POST /runs"):
        headers = call.get("headers", {})
        for name in ("location", "content-location"):
            if headers.get(name, "").startswith("/threads/"):
                headers[name] = "/" + headers[name].split("/", 3)[3]
    for event in data_of(call):
        if isinstance(event, dict) and event.get("type") == "event":
            event["params"].pop("node", None)
            data = event["params"]["data"]
            added = {"messages": ("message_id", "metadata"), "input.requested": ("value", "response_schema")}
            for name in added.get(event["method"], ()):
                data.pop(name, None)


def task_starts(call: Call) -> None:
    for data in data_of(call):
        if isinstance(data, dict) and data.get("type") == "task":
            data = data.get("payload")
        if isinstance(data, dict) and data.get("type") == "event":
            data = data["params"]["data"]
        if isinstance(data, dict) and "triggers" in data and data.get("interrupts") == []:
            del data["interrupts"]


def runnables(call: Call) -> None:
    if "events" not in call:
        return
    shown = [event["data"] for event in call["events"] if event.get("event") == "events"]
    streamed = {data["run_id"] for data in shown if data["event"] == "on_chat_model_stream"}
    call["events"] = [event for event in call["events"] if not is_left_out(event, streamed)]
    for data in shown:
        if data["event"].startswith("on_chat_model"):
            data["name"] = "model"
            data["data"].pop("input", None)


def is_left_out(event: dict[str, Any], streamed: set[str]) -> bool:
    if event.get("event") != "events":
        return False
    data = event["data"]
    if data["event"].startswith("on_chat_model"):
        return data["run_id"] not in streamed
    # The functions of our graphs that choose what runs next.
    return data["event"].startswith("on_chain") and data["name"] in ("spread", "after_review")


def answer_forms(call: Call) -> None:
    sent, read = "'fine'", "{'args': 'fine', 'type': 'response'}"
    for key in ("body", "events"):
        if read in json.dumps(call.get(key)):
            call[key] = json.loads(json.dumps(call[key]).replace(read, sent))


RULES: dict[str, Callable[[Call], None]] = {
    "answer-forms": answer_forms,
    "durability": durability,
    "event-ids": event_ids,
    "total": total,
    "error-texts": error_texts,
    "more": more,
    "task-starts": task_starts,
    "runnables": runnables,
}


# Rules for the two answers to one call: our server refuses what the reference accepts. The call is then not compared.

REFUSED_RUNS = {
    "resume_what_is_not_interrupted": (400,),
    "run_without_an_input_on_an_empty_thread": (400,),
    "answer_an_interrupt_that_is_not_open": (400,),
    "change_the_graph_of_a_thread": (409,),
}


def is_refused_run(script: str, ours: Call, theirs: Call) -> bool:
    return theirs.get("status") == 200 and "/runs/" in ours["call"] and ours.get("status") in REFUSED_RUNS.get(script, ())


def is_not_found(script: str, ours: Call, theirs: Call) -> bool:
    if ours.get("status") != 404:
        return False
    path = ours["call"]
    if path.endswith("/copy"):
        return theirs.get("status") == 409
    return theirs.get("status") == 200 and path.endswith(("/join", "/state"))


PAIR_RULES: dict[str, Callable[[str, Call, Call], bool]] = {"refusals": is_refused_run, "not-found": is_not_found}

if len(DIFFERENCES) > DIFFERENCES_MAX:
    raise ValueError(f"{len(DIFFERENCES)} differences on purpose are too many")
if unknown := (RULES.keys() | PAIR_RULES.keys()) - DIFFERENCES.keys():
    raise ValueError(f"rules for differences that are not listed: {sorted(unknown)}")


def apply(script: str, ours: list[Call], theirs: list[Call]) -> tuple[list[Call], list[Call]]:
    """Takes the differences on purpose out of the calls of both servers."""
    for call in (*ours, *theirs):
        for rule in RULES.values():
            rule(call)
    for index, (own, other) in enumerate(zip(ours, theirs, strict=False)):
        found = [name for name, rule in PAIR_RULES.items() if rule(script, own, other)]
        if found:
            ours[index] = theirs[index] = {"call": own["call"], "differences": found}
    # What was taken out may have been the first to name an id.
    return renumber(ours), renumber(theirs)
