"""Scripts that stream runs which people answer, which spread, wait or fail: in all modes, with subgraphs and without."""

from __future__ import annotations

import time

from api import Api, script

EMPTY_INBOX = {"messages": [], "log": []}
MAIL = {"messages": [{"role": "user", "content": "go", "id": "m1"}]}


@script("inbox")
def inbox_is_answered(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    api.show_thread()
    api.state()
    api.resume([{"type": "accept", "args": None}])
    api.show_thread()
    api.history()


@script("inbox")
def inbox_is_answered_by_id(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    interrupts = api.state()["tasks"][0]["interrupts"]
    api.resume({interrupts[0]["id"]: "yes"})
    api.state()


@script("inbox")
def inbox_is_marked_as_resolved(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    api.update_state(None, as_node="__end__")
    api.state()
    api.show_thread()


@script("inbox")
def inbox_is_answered_by_another_input(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    api.stream({"log": ["again"]})
    api.state()


@script("inbox")
def inbox_is_answered_with_an_update(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    api.stream(command={"resume": "yes", "update": {"log": ["noted"]}})
    api.state()


@script("inbox")
def inbox_is_edited_before_the_answer(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    api.update_state({"log": ["edited"]}, as_node="ask")
    api.state()
    api.stream()
    api.state()


@script("both")
def both_is_answered(api: Api) -> None:
    api.create_thread()
    api.stream(EMPTY_INBOX)
    api.state()
    api.resume("fine")
    api.state()


@script("nested")
def nested_is_answered(api: Api) -> None:
    api.create_thread()
    api.stream({"n": 0})
    api.show_thread()
    api.state()
    api.resume("yes")
    api.state()


@script("nested")
def nested_shows_the_state_of_its_child(api: Api) -> None:
    api.create_thread()
    api.stream({"n": 0})
    api.state(subgraphs=True)
    api.resume("yes")
    api.history()


@script("nested")
def nested_stops_before_its_child(api: Api) -> None:
    api.create_thread()
    api.stream({"n": 0}, interrupt_before=["sub"])
    api.stream(interrupt_before=["p2"])
    api.resume("yes", interrupt_before=["p2"])
    api.stream()


@script("nested")
def nested_is_replayed_before_its_child(api: Api) -> None:
    api.create_thread()
    api.stream({"n": 0})
    api.stream(checkpoint_id=api.checkpoint_before("sub"))
    api.state()


@script("fan")
def fan_spreads(api: Api) -> None:
    api.create_thread()
    api.stream({"items": [1, 2, 3], "out": []})
    api.state()


@script("fan")
def fan_has_nothing_to_spread(api: Api) -> None:
    api.create_thread()
    api.stream({"items": [], "out": []})
    api.state()


@script("fan")
def fan_stops_before_the_work(api: Api) -> None:
    api.create_thread()
    api.stream({"items": [4, 5]}, interrupt_before=["work"])
    api.state()
    api.stream()
    api.state()


@script("delay")
def delay_fails(api: Api) -> None:
    api.create_thread()
    api.stream({"ms": 5, "fail": True, "log": []})
    api.state()
    api.show_thread()


@script("delay")
def delay_fails_and_is_tried_again(api: Api) -> None:
    api.create_thread()
    api.stream({"ms": 1, "fail": True})
    api.stream()
    api.update_state({"fail": False}, as_node="__start__")
    api.stream()
    api.state()


@script("delay")
def delay_is_followed_by_a_run_that_waits(api: Api) -> None:
    api.create_thread()
    first = api.create_run({"ms": 400, "fail": False})
    api.stream({"ms": 1})
    api.run(first["run_id"])
    api.state()


@script("delay")
def delay_is_interrupted_by_another_run(api: Api) -> None:
    api.create_thread()
    first = api.create_run({"ms": 4000})
    api.wait_until_running(first["run_id"])
    time.sleep(0.3)
    api.stream({"ms": 1}, multitask_strategy="interrupt")
    api.run(first["run_id"])
    api.state()


@script("delay")
def delay_is_rolled_back_by_another_run(api: Api) -> None:
    api.create_thread()
    first = api.create_run({"ms": 4000})
    api.wait_until_running(first["run_id"])
    time.sleep(0.3)
    api.stream({"ms": 1}, multitask_strategy="rollback")
    api.run(first["run_id"])
    api.history()


@script("hitl")
def hitl_is_approved(api: Api) -> None:
    api.create_thread()
    api.stream(MAIL)
    api.state()
    api.resume({"decisions": [{"type": "approve"}]})
    api.state()


@script("hitl")
def hitl_is_rejected(api: Api) -> None:
    api.create_thread()
    api.stream(MAIL)
    api.resume({"decisions": [{"type": "reject", "message": "not now"}]})
    api.state()


@script("hitl")
def hitl_is_answered_wrongly(api: Api) -> None:
    api.create_thread()
    api.stream(MAIL)
    api.resume({"decisions": []})
    api.state()
