"""Scripts that stream runs of a chain and of a chat: in all modes, with subgraphs and without."""

from __future__ import annotations

from api import Api, script

CHAIN = {"n": 0, "log": []}
HELLO = {"messages": [{"role": "user", "content": "hi", "id": "m1"}]}


@script("chain")
def chain_runs(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN)
    api.state()
    api.show_thread()


@script("chain")
def chain_runs_twice(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN)
    api.stream({"n": 10})
    api.history()


@script("chain")
def chain_stops_before_a_node(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_before=["s2"])
    api.state()
    api.show_thread()
    api.stream()
    api.state()


@script("chain")
def chain_stops_after_a_node(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_after=["s1", "s3"])
    api.stream(interrupt_after=["s1", "s3"])
    api.stream()
    api.history()


@script("chain")
def chain_stops_before_every_node(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_before="*")
    api.stream(interrupt_before="*")
    api.stream(interrupt_before="*")
    api.state()


@script("chain")
def chain_is_edited_at_a_breakpoint(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_before=["s2"])
    api.update_state({"n": 100, "log": ["edited"]})
    api.state()
    api.stream()
    api.history()


@script("chain")
def chain_is_edited_as_a_later_node(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_before=["s1"])
    api.update_state({"n": 50, "log": ["as s3"]}, as_node="s3")
    api.state()
    api.stream()
    api.state()


@script("chain")
def chain_is_replayed_from_a_checkpoint(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN)
    api.stream(checkpoint_id=api.checkpoint_before("s3"))
    api.state()


@script("chain")
def chain_is_forked_with_an_edit(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN)
    fork = api.update_state({"n": 70}, checkpoint_id=api.checkpoint_before("s2"))
    api.stream(checkpoint=fork["checkpoint"])
    api.history()


@script("chain")
def chain_is_forked_with_an_input(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN)
    api.stream({"n": 30, "log": ["again"]}, checkpoint_id=api.checkpoint_before("s4"))
    api.state()


@script("chain")
def chain_reaches_its_recursion_limit(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, config={"recursion_limit": 3})
    api.show_thread()
    api.state()


@script("chain")
def chain_goes_to_a_node(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_before=["s1"])
    api.stream(command={"goto": "s4", "update": {"n": 9}})
    api.state()


@script("chain")
def chain_is_updated_by_a_command(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, interrupt_before=["s3"])
    api.stream(command={"update": {"n": 40, "log": ["commanded"]}})
    api.state()


@script("chain")
def chain_runs_without_a_thread(api: Api) -> None:
    api.post("/runs/stream", api.run_body(CHAIN))


@script("chain")
def chain_runs_without_a_thread_that_is_kept(api: Api) -> None:
    api.post("/runs/stream", api.run_body(CHAIN, on_completion="keep"))


@script("chain")
def chain_creates_its_thread(api: Api) -> None:
    api.new_thread()
    api.stream(CHAIN, if_not_exists="create")
    api.show_thread()


@script("chain")
def chain_has_metadata_and_configuration(api: Api) -> None:
    api.create_thread(metadata={"topic": "tests"})
    api.stream(CHAIN, metadata={"origin": "script"}, config={"tags": ["a", "b"], "configurable": {"tone": "warm"}})
    api.state()
    api.show_thread()


@script("chain")
def chain_has_a_context(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, context={"tone": "warm"})
    api.state()


@script("chain")
def chain_saves_when_it_exits(api: Api) -> None:
    api.create_thread()
    api.stream(CHAIN, durability="exit")
    api.history()


@script("chain")
def chain_has_a_partial_input(api: Api) -> None:
    api.create_thread()
    api.stream({"log": ["given"]})
    api.state()


@script("chain")
def chain_has_an_unknown_key(api: Api) -> None:
    api.create_thread()
    api.stream({"n": 1, "typo": True})
    api.state()


@script("chain")
def chain_is_joined(api: Api) -> None:
    api.create_thread()
    run = api.create_run(CHAIN, stream_resumable=True)
    api.settle()
    path = f"/threads/{api.thread}/runs/{run['run_id']}/stream"
    api.recorder.call("GET", path, headers={"Last-Event-ID": "-1"}, note=f"GET {path}")


@script("agent")
def agent_answers(api: Api) -> None:
    api.create_thread()
    api.stream(HELLO)
    api.state()
    api.show_thread()


@script("agent")
def agent_answers_twice(api: Api) -> None:
    api.create_thread()
    api.stream(HELLO)
    api.stream({"messages": [{"role": "user", "content": "and again", "id": "m2"}]})
    api.state()


@script("agent")
def agent_reads_messages_of_all_kinds(api: Api) -> None:
    api.create_thread()
    api.stream({"messages": [
        {"type": "system", "content": "Be kind.", "id": "s1"},
        {"type": "human", "content": [{"type": "text", "text": "look"}], "id": "m1"},
        {"type": "ai", "content": "", "id": "a1", "tool_calls": [{"name": "find", "args": {"q": 1}, "id": "c1", "type": "tool_call"}]},
        {"type": "tool", "content": "found", "tool_call_id": "c1", "name": "find", "id": "t1"},
    ]})
    api.state()


@script("agent")
def agent_forgets_a_message(api: Api) -> None:
    api.create_thread()
    api.stream(HELLO)
    api.update_state({"messages": [{"type": "remove", "content": "", "id": "m1"}]})
    api.stream({"messages": [{"role": "user", "content": "who am I?", "id": "m2"}]})
    api.state()


@script("agent")
def agent_has_a_message_replaced(api: Api) -> None:
    api.create_thread()
    api.stream(HELLO)
    api.stream({"messages": [{"role": "user", "content": "hi, corrected", "id": "m1"}]})
    api.state()


@script("agent")
def agent_has_an_answer_written_for_it(api: Api) -> None:
    api.create_thread()
    api.stream(HELLO, interrupt_before=["chat"])
    api.update_state({"messages": [{"type": "ai", "content": "by hand", "id": "a1"}]}, as_node="chat")
    api.state()
    api.stream()
