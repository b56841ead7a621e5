"""The side of LangGraph in Python: `side.py WORK STORE [name=value ...]`, then a round for every line.

The lines it speaks are those of `bench/rounds`.
"""

import asyncio
import json
import sys
import time
import uuid
from importlib.metadata import version

from langgraph.types import Command

import graphs
import savers


def thread():
    return {"configurable": {"thread_id": str(uuid.uuid4())}, "recursion_limit": 5000}


class Stopwatch:
    """Both clocks of a round: the wall's, and the processors' over all threads of this process."""

    def __init__(self):
        self.cpu, self.begun = time.process_time(), time.perf_counter()

    def elapsed(self):
        return time.perf_counter() - self.begun

    def stop(self, units, times=(), grown=None):
        wall, cpu = self.elapsed(), time.process_time() - self.cpu
        return {"units": units, "wall_s": wall, "cpu_s": cpu, "times_s": list(times), "bytes": grown}


def chain(kept, settings):
    graph, modes = graphs.chain(kept.saver), durability(settings)
    graph.invoke(graphs.BEGINNING, thread(), **modes)
    watch, steps = Stopwatch(), 0
    while steps == 0 or watch.elapsed() < float(settings["seconds"]):
        graph.invoke(graphs.BEGINNING, thread(), **modes)
        steps += graphs.NODES
    return watch.stop(steps)


def loop(kept, settings):
    turns = int(settings["turns"])
    graph, empty = graphs.loop(kept.saver, turns, settings.get("channel")), kept.bytes()
    watch = Stopwatch()
    state = graph.invoke(graphs.BEGINNING, thread())
    round_ = watch.stop(2 * turns)
    assert len(state["messages"]) == 2 * turns
    return round_ | {"bytes": kept.bytes() - empty}


def marginal(kept, settings):
    """What so many threads add to a store that has as many already."""
    turns, threads = int(settings["turns"]), int(settings["threads"])
    graph = graphs.loop(kept.saver, turns, settings.get("channel"))

    def talk():
        for _ in range(threads):
            state = graph.invoke(graphs.BEGINNING, thread())
            assert len(state["messages"]) == 2 * turns

    talk()
    before, watch = kept.bytes(), Stopwatch()
    talk()
    round_ = watch.stop(threads)
    return round_ | {"bytes": kept.bytes() - before}


def fanout(kept, settings):
    branches = int(settings["branches"])
    graph = graphs.fan_out(kept.saver, branches)
    watch = Stopwatch()
    state = graph.invoke({"out": []}, thread())
    round_ = watch.stop(1)
    assert state["total"] == branches
    return round_


def resume(kept, settings):
    graph = graphs.approval(kept.saver)
    waiting = park(graph, int(settings["threads"]))
    watch, times = Stopwatch(), []
    for parked_thread in waiting:
        begun = time.perf_counter()
        state = graph.invoke(Command(resume="yes"), parked_thread)
        times.append(time.perf_counter() - begun)
        assert state["step"] == 3
    return watch.stop(len(times), times)


def parked(kept, settings):
    graph, empty = graphs.approval(kept.saver), kept.bytes()
    watch = Stopwatch()
    waiting = park(graph, int(settings["threads"]))
    round_ = watch.stop(len(waiting))
    return round_ | {"bytes": kept.bytes() - empty}


def park(graph, threads):
    """Starts so many threads, each up to its question."""
    waiting = [thread() for _ in range(threads)]
    for parked_thread in waiting:
        graph.invoke(graphs.BEGINNING, parked_thread)
    return waiting


async def chains_at_once(settings):
    """So many threads at once over one pool of connections, as its documentation shows for servers."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    session = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    sizes = {"min_size": CONNECTIONS, "max_size": CONNECTIONS}
    async with AsyncConnectionPool(savers.address(), kwargs=session, open=False, **sizes) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        savers.clear()
        graph = graphs.chain(saver, graphs.step_async)
        await graph.ainvoke(graphs.BEGINNING, thread())
        watch = Stopwatch()

        async def worker():
            steps = 0
            while steps == 0 or watch.elapsed() < float(settings["seconds"]):
                await graph.ainvoke(graphs.BEGINNING, thread())
                steps += graphs.NODES
            return steps

        steps = await asyncio.gather(*(worker() for _ in range(int(settings["at_once"]))))
        return watch.stop(sum(steps))


def durability(settings):
    """Without the setting, its default: the step does not wait for its checkpoint."""
    return {"durability": settings["durability"]} if "durability" in settings else {}


def one_round(work, store, settings):
    if work == "chain" and int(settings["at_once"]) > 1:
        return asyncio.run(chains_at_once(settings))
    with savers.fresh(store) as kept:
        return WORKS[work](kept, settings)


def main():
    work, store, *pairs = sys.argv[1:]
    settings = dict(pair.split("=", 1) for pair in pairs)
    print(json.dumps({"version": version("langgraph")}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(one_round(work, store, settings)), flush=True)


WORKS = {
    "chain": chain,
    "loop": loop,
    "marginal": marginal,
    "fanout": fanout,
    "resume": resume,
    "parked": parked,
}
CONNECTIONS = 16

if __name__ == "__main__":
    main()
