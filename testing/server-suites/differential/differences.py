"""What our server does otherwise on purpose, and how a comparison takes it out. Everything else that differs fails.

`differences.json` has the list, with reasons. Here are the rules, by name: a difference that no script meets has none.
"""

from __future__ import annotations

import copy
import json
import re
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


def is_tool_event(event: dict[str, Any]) -> bool:
    data = event.get("data")
    return isinstance(data, dict) and data.get("type") == "event" and data.get("method") == "tools"


def more(call: Call) -> None:
    if "events" in call:
        call["events"] = [event for event in call["events"] if not is_tool_event(event)]
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
        if data["event"].startswith("on_chain") and "langgraph_node" in data["metadata"]:
            for name in ("chunk", "output"):
                if data["data"].get(name) == {}:
                    data["data"][name] = None
        if data["event"] == "on_tool_end" and isinstance(data["data"].get("output"), dict):
            # A copy: recorded values that are equal are one object.
            output = data["data"]["output"]
            data["data"]["output"] = {key: output[key] for key in output if key != "id"}


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
        blocks_as_text(call.get(key))


def blocks_as_text(value: Any) -> None:
    """Writes messages of models with one text, which the newer protocol has stored as blocks, as others are written."""
    if isinstance(value, list):
        for inner in value:
            blocks_as_text(inner)
    if not isinstance(value, dict):
        return
    for inner in value.values():
        blocks_as_text(inner)
    blocks = value.get("content")
    if value.get("type") != "ai" or value.get("response_metadata") != {"output_version": "v1"} or not isinstance(blocks, list):
        return
    if len(blocks) == 1 and blocks[0].keys() == {"index", "text", "type"}:
        value["content"] = blocks[0]["text"]
        del value["response_metadata"]["output_version"]
        # The short form of a message has no fields that are empty.
        if "additional_kwargs" not in value:
            del value["response_metadata"]


def closed_interrupts(call: Call) -> None:
    """Takes out of a task, and of the state that it is in, the interrupts that the subgraph inside of it does not have any more."""
    for body in bodies(call):
        tasks = [task for task in body.get("tasks") or [] if isinstance(task.get("state"), dict) and "interrupts" in task["state"]]
        for task in tasks:
            closed = [asked for asked in task["interrupts"] if asked not in task["state"]["interrupts"]]
            task["interrupts"] = [asked for asked in task["interrupts"] if asked not in closed]
            body["interrupts"] = [asked for asked in body["interrupts"] if asked not in closed]


RULES: dict[str, Callable[[Call], None]] = {
    "answer-forms": answer_forms,
    "refusals": closed_interrupts,
    "durability": durability,
    "event-ids": event_ids,
    "total": total,
    "error-texts": error_texts,
    "more": more,
    "task-starts": task_starts,
    "runnables": runnables,
}


# Rules for the two answers to one call: our server refuses what the reference accepts, or the other way round. The call is then not
# compared.

REFUSED_RUNS = {
    "resume_what_is_not_interrupted": (400,),
    "run_without_an_input_on_an_empty_thread": (400,),
    "answer_an_interrupt_that_is_not_open": (400,),
    "change_the_graph_of_a_thread": (409,),
    "edit_the_state_of_a_child": (400,),
}


def is_refused_run(script: str, ours: Call, theirs: Call) -> bool:
    return theirs.get("status") == 200 and "/runs/" in ours["call"] and ours.get("status") in REFUSED_RUNS.get(script, ())


def is_refusal(script: str, ours: Call, theirs: Call) -> bool:
    return is_refused_run(script, ours, theirs) or is_taken_once(script, ours, theirs)


def is_taken_once(script: str, ours: Call, theirs: Call) -> bool:
    """A node fails with an answer: theirs asks again, and ours has taken the answer. Theirs also shows an update that writes nothing."""
    if script != "hitl_is_answered_wrongly":
        return False
    if ours["call"].endswith("/state"):
        failed = [task["name"] for task in theirs["body"]["tasks"] if task["error"] and task["interrupts"]]
        return len(failed) == 1 and without(ours, ("interrupts",)) == without(theirs, ("interrupts",))
    if not ours["call"].endswith("/runs/stream"):
        return False
    written = [event for event in theirs["events"] if event["event"] != "updates" or any(event["data"].values())]
    return ours["events"] == written


def is_not_found(script: str, ours: Call, theirs: Call) -> bool:
    if ours.get("status") != 404:
        return False
    path = ours["call"]
    return theirs.get("status") == 200 and path.endswith(("/join", "/state"))


def is_stored_otherwise(script: str, ours: Call, theirs: Call) -> bool:
    rules = {"chain_saves_when_it_exits": is_stored_at_both_ends, "chain_goes_to_a_node": is_contradicted}
    return script in rules and rules[script](ours, theirs)


def is_stored_at_both_ends(ours: Call, theirs: Call) -> bool:
    """A run with `exit`: our history also has its input. The supersteps in our stream have one id, and theirs have no parents."""
    names = ("checkpoint", "checkpoint_id", "config", "parent_checkpoint", "parent_checkpoint_id", "parent_config")
    if ours["call"].endswith("/history"):
        [last, *before] = ours["body"]
        [kept] = theirs["body"]
        return [state["metadata"]["source"] for state in before] == ["loop", "input"] and without(last, names) == without(kept, names)
    return ours["call"].endswith("/runs/stream") and without(ours, names) == without(theirs, names)


def is_contradicted(ours: Call, theirs: Call) -> bool:
    """Two tasks of a superstep write one channel: theirs shows what each wrote, and forgets that one of them was planned."""
    if ours["call"].endswith("/state"):
        names = ("next", "tasks", "values")
        shown = [(state["body"]["next"], state["body"]["values"]["log"]) for state in (ours, theirs)]
        return shown == [(["s1", "s4"], ["s0"]), ([], ["s0", "s1"])] and without(ours, names) == without(theirs, names)
    if not ours["call"].endswith("/runs/stream"):
        return False
    # Which of the two shows something first is left to chance.
    shown = [sorted(json.dumps(event, sort_keys=True) for event in call["events"]) for call in (ours, theirs)]
    wrote = [event for event in theirs["events"] if not is_result(event)]
    return sorted(json.dumps(event, sort_keys=True) for event in wrote) == shown[0]


def is_result(event: dict[str, Any]) -> bool:
    """Whether an event shows what a task wrote."""
    data = event["data"]
    data = data.get("payload", data)
    is_end = data.get("event") in ("on_chain_stream", "on_chain_end") and data["name"] != "chain"
    return event["event"] == "updates" or "result" in data or is_end


def without(value: Any, names: tuple[str, ...]) -> Any:
    """Returns a value without the fields with these names, at whichever depth."""
    if isinstance(value, dict):
        return {name: without(inner, names) for name, inner in value.items() if name not in names}
    return [without(inner, names) for inner in value] if isinstance(value, list) else value


THREAD = re.compile(r"GET /threads/[^/]+")


def is_thread_in_subgraph(script: str, ours: Call, theirs: Call) -> bool:
    """Whether both answers are the same thread in a subgraph, and the reference shows the values of the subgraph as the thread's."""
    if not THREAD.fullmatch(ours["call"]) or not ours.get("status") == theirs.get("status") == 200:
        return False
    own, other = ours["body"], theirs["body"]
    shown = ("values", "interrupts")
    rest = [{key: body[key] for key in body if key not in shown} for body in (own, other)]
    asked = [list((body.get("interrupts") or {}).values()) for body in (own, other)]
    is_other = isinstance(other.get("values"), dict) and not own["values"].keys() <= other["values"].keys()
    return script == "nested_is_answered" and rest[0] == rest[1] and asked[0] == asked[1] != [] and is_other


def log_of(call: Call) -> Any:
    body = call.get("body")
    return (body.get("values") or body).get("log") if isinstance(body, dict) else None


def is_dropped_input(script: str, ours: Call, theirs: Call) -> bool:
    kept, left = log_of(ours), log_of(theirs)
    return script == "create_a_thread_with_a_state" and isinstance(left, list) and kept == ["a", *left]


def is_more(script: str, ours: Call, theirs: Call) -> bool:
    if is_failed_history(ours, theirs) or is_thread_in_subgraph(script, ours, theirs):
        return True
    if script != "create_change_and_delete_assistants" or ours == theirs:
        return False
    ours, theirs = copy.deepcopy(ours), copy.deepcopy(theirs)
    for body in (*bodies(ours), *bodies(theirs)):
        if isinstance(body.get("config"), dict):
            body["config"].pop("tags", None)
        body.pop("context", None)
    return ours == theirs


def is_failed_history(ours: Call, theirs: Call) -> bool:
    return ours["call"].endswith("/history") and (ours.get("status"), theirs.get("status")) == (200, 500)


PAIR_RULES: dict[str, Callable[[str, Call, Call], bool]] = {
    "inputs": is_dropped_input,
    "durability": is_stored_otherwise,
    "refusals": is_refusal,
    "not-found": is_not_found,
    "more": is_more,
}

if len(DIFFERENCES) > DIFFERENCES_MAX:
    raise ValueError(f"{len(DIFFERENCES)} differences on purpose are too many")
if unknown := (RULES.keys() | PAIR_RULES.keys()) - DIFFERENCES.keys():
    raise ValueError(f"rules for differences that are not listed: {sorted(unknown)}")


def apply(script: str, ours: list[Call], theirs: list[Call]) -> tuple[list[Call], list[Call]]:
    """Takes the differences on purpose out of the calls of both servers."""
    for call in (*ours, *theirs):
        for rule in RULES.values():
            rule(call)
    failed = [index for index, pair in enumerate(zip(ours, theirs, strict=False)) if is_failed_history(*pair)]
    if failed and theirs[-1]["call"] == "the script could not continue":
        # The reference closed the connection after that, so there is nothing to compare with.
        del ours[failed[0] + 1 :], theirs[failed[0] + 1 :]
    for index, (own, other) in enumerate(zip(ours, theirs, strict=False)):
        found = [name for name, rule in PAIR_RULES.items() if rule(script, own, other)]
        if found:
            ours[index] = theirs[index] = {"call": own["call"], "differences": found}
    # What was taken out may have been the first to name an id.
    return renumber(ours), renumber(theirs)
