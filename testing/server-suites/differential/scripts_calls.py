"""Scripts about everything but stream modes: each runs once."""

from __future__ import annotations

import time
import uuid

from api import Api, script
from scripts_streams import CHAIN, HELLO
from scripts_streams_people import EMPTY_INBOX


@script("chain", streams=False)
def wait_for_a_run(api: Api) -> None:
    api.create_thread()
    api.wait(CHAIN)
    api.wait({"n": 5}, interrupt_before=["s2"])
    api.wait()
    api.get(f"/threads/{api.thread}/runs")


@script("inbox", streams=False)
def wait_for_an_interrupt(api: Api) -> None:
    api.create_thread()
    api.wait(EMPTY_INBOX)
    api.wait(command={"resume": "yes"})
    api.show_thread()


@script("delay", streams=False)
def wait_for_an_error(api: Api) -> None:
    api.create_thread()
    api.wait({"ms": 1, "fail": True})
    api.show_thread()
    api.get(f"/threads/{api.thread}/runs")


@script("chain", streams=False)
def wait_without_a_thread(api: Api) -> None:
    api.post("/runs/wait", api.run_body(CHAIN))


@script("delay", streams=False)
def fail_without_a_thread(api: Api) -> None:
    api.post("/runs/wait", api.run_body({"ms": 1, "fail": True}))


@script("chain", streams=False)
def join_a_run(api: Api) -> None:
    api.create_thread()
    run = api.create_run(CHAIN)
    api.run(run["run_id"], "/join")
    api.settle()
    api.run(run["run_id"])


@script("chain", streams=False)
def list_and_delete_runs(api: Api) -> None:
    api.create_thread()
    first = api.create_run(CHAIN, metadata={"number": 1})
    api.settle()
    api.create_run({"n": 3}, metadata={"number": 2})
    api.settle()
    runs = f"/threads/{api.thread}/runs"
    api.get(runs)
    api.get(runs, limit=1)
    api.get(runs, status="success", limit=1, offset=1)
    api.get(runs, status="error")
    api.send("DELETE", f"{runs}/{first['run_id']}")
    api.send("DELETE", f"{runs}/{first['run_id']}")
    api.get(runs)


@script("chain", streams=False)
def create_runs_in_a_batch(api: Api) -> None:
    runs = api.post("/runs/batch", [
        {"assistant_id": "chain", "input": CHAIN, "metadata": {"number": 1}},
        {"assistant_id": "chain", "input": {"n": 7}, "metadata": {"number": 2}},
    ])
    assert len(runs) == 2


@script("delay", streams=False)
def cancel_a_run(api: Api) -> None:
    api.create_thread()
    run = api.create_run({"ms": 8000})
    api.wait_until_running(run["run_id"])
    time.sleep(0.3)
    path = f"/threads/{api.thread}/runs/{run['run_id']}"
    api.send("POST", f"{path}/cancel", wait="1")
    api.get(path)
    api.show_thread()
    api.state()
    api.send("POST", f"{path}/cancel", wait="1")


@script("delay", streams=False)
def cancel_a_run_and_roll_back(api: Api) -> None:
    api.create_thread()
    run = api.create_run({"ms": 8000})
    api.wait_until_running(run["run_id"])
    time.sleep(0.3)
    path = f"/threads/{api.thread}/runs/{run['run_id']}"
    api.send("POST", f"{path}/cancel", wait="1", action="rollback")
    api.get(path)
    api.show_thread()
    api.state()


@script("delay", streams=False)
def cancel_many_runs(api: Api) -> None:
    api.create_thread()
    first = api.create_run({"ms": 8000})
    second = api.create_run({"ms": 1})
    api.wait_until_running(first["run_id"])
    time.sleep(0.3)
    ids = [second["run_id"], first["run_id"]]
    api.post("/runs/cancel", {"thread_id": api.thread, "run_ids": ids}, action="interrupt")
    api.settle()
    api.run(first["run_id"])
    api.run(second["run_id"])
    api.post("/runs/cancel", {"thread_id": api.thread, "run_ids": [str(uuid.uuid4())]})


@script("delay", streams=False)
def reject_a_second_run(api: Api) -> None:
    api.create_thread()
    first = api.create_run({"ms": 1500})
    api.wait_until_running(first["run_id"])
    api.create_run({"ms": 1}, multitask_strategy="reject")
    api.settle()
    api.create_run({"ms": 1}, multitask_strategy="reject")
    api.settle()
    api.get(f"/threads/{api.thread}/runs")


@script("chain", streams=False)
def create_change_and_delete_threads(api: Api) -> None:
    thread = str(uuid.uuid4())
    api.create_thread(thread_id=thread, metadata={"a": 1})
    api.post("/threads", {"thread_id": thread})
    api.post("/threads", {"thread_id": thread, "if_exists": "do_nothing"})
    api.send("PATCH", f"/threads/{thread}", {"metadata": {"b": 2}})
    api.send("PATCH", f"/threads/{thread}", {"metadata": {"c": 3}}, headers={"Prefer": "return=minimal"})
    api.show_thread()
    api.state()
    api.history()
    api.send("DELETE", f"/threads/{thread}")
    api.show_thread()
    api.send("DELETE", f"/threads/{thread}")


@script("chain", streams=False)
def search_and_count_threads(api: Api) -> None:
    mark = str(uuid.uuid4())
    for number in range(3):
        api.create_thread(metadata={"mark": mark, "number": number})
    api.wait(CHAIN)
    api.wait({"n": 1}, interrupt_before=["s3"])
    search = {"metadata": {"mark": mark}, "sort_by": "created_at"}
    api.post("/threads/search", search)
    api.post("/threads/search", {**search, "sort_order": "asc", "limit": 2})
    api.post("/threads/search", {**search, "status": "interrupted", "select": ["thread_id", "status", "values"]})
    api.post("/threads/search", {**search, "status": "busy"})
    api.post("/threads/search", {**search, "status": "interrupted", "extract": {"last": "values.log[-1]", "n": "values.n"}})
    api.post("/threads/count", {"metadata": {"mark": mark}})
    api.post("/threads/count", {"metadata": {"mark": mark}, "status": "idle"})


@script("chain", streams=False)
def copy_a_thread(api: Api) -> None:
    api.create_thread(metadata={"copied": False})
    api.wait(CHAIN, interrupt_before=["s3"])
    copy = api.post(f"/threads/{api.thread}/copy", None)
    api.thread = copy["thread_id"]
    api.state()
    api.wait()
    api.history()


@script("chain", streams=False)
def create_a_thread_with_a_state(api: Api) -> None:
    api.create_thread(metadata={"graph_id": "chain"}, supersteps=[
        {"updates": [{"values": {"n": 1, "log": ["a"]}, "as_node": "__input__"}]},
        {"updates": [{"values": {"n": 2, "log": ["b"]}, "as_node": "s0"}]},
    ])
    api.show_thread()
    api.state()
    api.wait()


@script("chain", streams=False)
def read_the_history(api: Api) -> None:
    api.create_thread()
    api.wait(CHAIN)
    states = api.history()
    api.history(limit=2)
    api.history(before=states[2]["checkpoint"])
    api.history(metadata={"step": 1})
    checkpoint = states[3]["checkpoint"]["checkpoint_id"]
    api.get(f"/threads/{api.thread}/state/{checkpoint}")
    api.post(f"/threads/{api.thread}/state/checkpoint", {"checkpoint": {"checkpoint_id": checkpoint}})
    api.get(f"/threads/{api.thread}/history", limit=3)


@script("nested", streams=False)
def read_the_history_of_a_child(api: Api) -> None:
    api.create_thread()
    api.wait({"n": 0})
    state = api.state(subgraphs=True)
    child = state["tasks"][0]["state"]["checkpoint"]
    api.post(f"/threads/{api.thread}/state/checkpoint", {"checkpoint": child})
    api.history(checkpoint={"checkpoint_ns": child["checkpoint_ns"]})
    api.history()


@script("nested", streams=False)
def edit_the_state_of_a_child(api: Api) -> None:
    api.create_thread()
    api.wait({"n": 0})
    state = api.state(subgraphs=True)
    child = state["tasks"][0]["state"]["checkpoint"]
    api.update_state({"n": 99}, checkpoint=child)
    api.state(subgraphs=True)
    api.wait(command={"resume": "yes"})


@script("agent", streams=False)
def edit_messages(api: Api) -> None:
    api.create_thread()
    api.wait(HELLO)
    api.update_state({"messages": [{"role": "user", "content": "more", "id": "m2"}]})
    api.update_state({"messages": [{"type": "remove", "content": "", "id": "m2"}]})
    api.update_state({"messages": [{"type": "remove", "content": "", "id": "__remove_all__"}]})
    api.state()
    api.history()


@script("chain", streams=False)
def edit_what_is_not_there(api: Api) -> None:
    api.create_thread()
    api.update_state({"n": 1})
    api.wait(CHAIN)
    api.update_state({"n": 1}, as_node="nowhere")
    api.update_state({"n": 1}, checkpoint_id=str(uuid.uuid4()))
    api.thread = str(uuid.uuid4())
    api.update_state({"n": 1})
    api.state()
    api.history()


@script("chain", streams=False)
def ask_for_what_is_not_there(api: Api) -> None:
    missing = str(uuid.uuid4())
    api.get(f"/threads/{missing}")
    api.get("/threads/not-a-uuid")
    api.send("PATCH", f"/threads/{missing}", {"metadata": {}})
    api.post(f"/threads/{missing}/copy", None)
    api.post(f"/threads/{missing}/runs", {"assistant_id": "chain"})
    api.create_thread()
    api.post(f"/threads/{api.thread}/runs", {"assistant_id": "nowhere", "input": CHAIN})
    api.post(f"/threads/{api.thread}/runs", {"assistant_id": missing, "input": CHAIN})
    api.post(f"/threads/{api.thread}/runs", {"input": CHAIN})
    api.post(f"/threads/{api.thread}/runs/stream", api.run_body(CHAIN, stream_mode=["colours"]))
    api.post(f"/threads/{api.thread}/runs/stream", api.run_body(CHAIN, multitask_strategy="maybe"))
    api.run(missing)
    api.run(missing, "/join")
    api.send("POST", f"/threads/{api.thread}/runs/{missing}/cancel")
    api.get(f"/assistants/{missing}")
    api.get("/store/items", key="none", namespace="tests")


@script("chain", streams=False)
def resume_what_is_not_interrupted(api: Api) -> None:
    api.create_thread()
    api.wait(CHAIN)
    api.wait(command={"resume": "yes"})


@script("chain", streams=False)
def run_without_an_input_on_an_empty_thread(api: Api) -> None:
    api.create_thread()
    api.wait()


@script("inbox", streams=False)
def answer_an_interrupt_that_is_not_open(api: Api) -> None:
    api.create_thread()
    api.wait(EMPTY_INBOX)
    api.wait(command={"resume": {"0" * 32: "yes"}})


@script("chain", streams=False)
def change_the_graph_of_a_thread(api: Api) -> None:
    api.create_thread()
    api.wait(CHAIN)
    api.wait({"ms": 1}, assistant_id="delay")


@script("chain", streams=False)
def create_change_and_delete_assistants(api: Api) -> None:
    mark = str(uuid.uuid4())
    made = api.post("/assistants", {"graph_id": "chain", "name": "mine", "metadata": {"mark": mark}, "config": {"tags": ["x"]}})
    path = f"/assistants/{made['assistant_id']}"
    api.get(path)
    api.post("/assistants", {"graph_id": "chain", "assistant_id": made["assistant_id"]})
    api.post("/assistants", {"graph_id": "chain", "assistant_id": made["assistant_id"], "if_exists": "do_nothing"})
    api.send("PATCH", path, {"name": "renamed", "metadata": {"more": 1}})
    api.send("PATCH", path, {"context": {"tone": "warm"}})
    api.post(f"{path}/versions", {})
    api.post(f"{path}/latest", {"version": 1})
    api.post("/assistants/search", {"metadata": {"mark": mark}})
    api.post("/assistants/count", {"metadata": {"mark": mark}})
    api.create_thread()
    api.wait(CHAIN, assistant_id=made["assistant_id"])
    api.show_thread()
    api.send("DELETE", path)
    api.get(path)
    api.post("/assistants", {"graph_id": "nowhere"})


@script("nested", streams=False)
def draw_graphs(api: Api) -> None:
    api.get("/assistants/nested/graph")
    api.get("/assistants/nested/graph", xray=True)
    api.get("/assistants/fan/graph")
    api.get("/assistants/chain/graph", xray=1)


@script("agent", streams=False)
def list_default_assistants(api: Api) -> None:
    api.post("/assistants/search", {"graph_id": "agent", "metadata": {"created_by": "system"}})
    api.post("/assistants/search", {"graph_id": "agent", "metadata": {"created_by": "system"}, "select": ["graph_id", "name"]})


@script("chain", streams=False)
def store_items(api: Api) -> None:
    space = ["tests", uuid.uuid4().hex]
    where = ".".join(space)
    for number, colour in enumerate(["red", "green", "red"]):
        api.send("PUT", "/store/items", {"namespace": [*space, "items"], "key": f"k{number}", "value": {"colour": colour, "n": number}})
    api.get("/store/items", namespace=f"{where}.items", key="k1")
    api.get("/store/items", namespace=f"{where}.items", key="k9")
    search = {"namespace_prefix": space}
    # One match each: the reference has no order.
    api.post("/store/items/search", {**search, "filter": {"colour": "green"}})
    api.post("/store/items/search", {**search, "offset": 1, "filter": {"colour": "green"}})
    api.post("/store/items/search", {**search, "filter": {"n": {"$gt": 1}}})
    api.post("/store/items/search", {"namespace_prefix": [*space, "none"]})
    api.post("/store/namespaces", {"prefix": space})
    api.post("/store/namespaces", {"prefix": space, "max_depth": 2})
    api.send("DELETE", "/store/items", {"namespace": [*space, "items"], "key": "k1"})
    api.get("/store/items", namespace=f"{where}.items", key="k1")
    api.send("PUT", "/store/items", {"namespace": ["a.b"], "key": "k", "value": {}})
    api.send("PUT", "/store/items", {"namespace": space, "key": "k", "value": "text"})
