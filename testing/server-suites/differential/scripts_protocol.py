"""Scripts of the protocol of threads: commands, and the events that follow. Each runs once."""

from __future__ import annotations

from api import Api, script
from scripts_streams import CHAIN, HELLO
from scripts_streams_people import EMPTY_INBOX, MAIL

# Those that the reference shows of every graph.
CHANNELS = ["values", "messages", "tools", "lifecycle", "input"]


def talk(api: Api, *steps) -> None:
    """Subscribes, sends one command after the other, and records the events."""
    api.create_thread()
    stream = api.open_events(CHANNELS)
    for number, step in enumerate(steps):
        step(number + 1)
        stream.wait_for_end(number + 1)
    api.close_events(stream)
    api.state()


@script("chain", streams=False)
def protocol_of_a_chain(api: Api) -> None:
    talk(api, lambda n: api.command(n, "run.start", assistant_id="chain", input=CHAIN))


@script("agent", streams=False)
def protocol_of_a_chat(api: Api) -> None:
    talk(
        api,
        lambda n: api.command(n, "run.start", assistant_id="agent", input=HELLO),
        lambda n: api.command(n, "run.start", assistant_id="agent", input={"messages": [{"role": "user", "content": "again", "id": "m2"}]}),
    )


def respond(api: Api, answer):
    def step(number: int) -> None:
        interrupts = api.recorder.http.get(f"/threads/{api.thread}").json()["interrupts"]
        interrupt = next(iter(interrupts.values()))[0]["id"]
        api.command(number, "input.respond", interrupt_id=interrupt, namespace=[], response=answer)

    return step


@script("inbox", streams=False)
def protocol_of_an_interrupt(api: Api) -> None:
    talk(api, lambda n: api.command(n, "run.start", assistant_id="inbox", input=EMPTY_INBOX), respond(api, "yes"))


@script("nested", streams=False)
def protocol_of_a_child(api: Api) -> None:
    talk(api, lambda n: api.command(n, "run.start", assistant_id="nested", input={"n": 0}), respond(api, "yes"))


@script("delay", streams=False)
def protocol_of_an_error(api: Api) -> None:
    talk(api, lambda n: api.command(n, "run.start", assistant_id="delay", input={"ms": 1, "fail": True}))


@script("hitl", streams=False)
def protocol_of_a_tool(api: Api) -> None:
    talk(
        api,
        lambda n: api.command(n, "run.start", assistant_id="hitl", input=MAIL),
        respond(api, {"decisions": [{"type": "approve"}]}),
    )


@script("fan", streams=False)
def protocol_of_a_fan(api: Api) -> None:
    talk(api, lambda n: api.command(n, "run.start", assistant_id="fan", input={"items": [1, 2]}))


@script("chain", streams=False)
def protocol_refuses(api: Api) -> None:
    api.create_thread()
    path = f"/threads/{api.thread}/commands"
    api.post(path, {"id": 1, "method": "no.such"})
    api.post(path, {"method": "run.start"})
    api.command(2, "run.start", assistant_id="nowhere", input={})
    api.command(3, "input.respond", interrupt_id="0" * 32, namespace=[], response=1)
    api.command(4, "agent.getTree")
    api.post(f"/threads/{api.thread}/stream/events", {})
