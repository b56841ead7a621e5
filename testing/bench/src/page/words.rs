//! What the page says besides figures: how they were measured, and what they can and cannot show.

pub(super) const OPENING: &str = "\
# Benchmarks

How fast Superstep is and how little it stores, next to bare floors and to other runtimes for graphs of agents.
Every figure comes from the files `results/bench*.json`; a test holds this page to them.

<!-- Written by `cargo xtask bench page`. Change the program, not the page. -->
";

pub(super) const RESULTS: &str = "
A ratio is ours divided by theirs. The sections below have every side with the least and the most of its rounds, also the bare
databases; [missed goals](#missed-goals) have a section of their own.
";

pub(super) const QUICK: &str = "
**These figures come from a quick look: small sizes, one round, speed not judged.**
";

pub(super) const METHOD: &str = "
## How it is measured

- Every side is a process of its own, ours too: a `Runtime` over the checkpointer as it comes, event log on. No side
  calls a model. Nodes append a message of 200 random bytes that was made beforehand.
- Sides take turns: in every round each has its own, so whatever else the machine does hits all of them. A figure is
  the median of its rounds: eleven of a second each where a goal is near to what the disk does, five elsewhere, one for
  the weight of paused threads, which does not vary. The least and the most are next to it.
- CPU is what the process itself used, user and system, over all its threads. The server of PostgreSQL is not in it, on
  any side.
- **Floor, one row**: a program without any crate of ours commits one row of 1 KiB at a time, with prepared statements.
  SQLite has WAL and `synchronous=FULL`, PostgreSQL has `synchronous_commit=on`, as ours have.
- **Floor, same rows**: the same program writes the rows that ours writes, into tables and indexes that ours made.
  Triggers record every row that one chain of ours inserts, changes or deletes; the floor repeats that, thread after
  thread: one transaction a commit on SQLite, one statement a commit on PostgreSQL. It compares nothing and reads
  nothing. A chain of 20 supersteps is counted as 20, with the commit that starts the run included, as ours is.
- At 64 threads both floors run with 64 connections and with the 16 that ours has; the faster one is what counts.
- The stores of a side are empty when it begins; figures of bytes are what they grew by, indexes included.
";

pub(super) const FAIRNESS: &str = "
## What is compared fairly, and what is not

- LangGraph's default durability is `async`: a step does not wait for its checkpoint, and a crash may lose it. Ours
  waits. Rows marked *sync* are LangGraph waiting as well. Goals are set on the default, which is the faster one.
- LangGraph stores the whole list of messages again in every step, unless its opt-in `DeltaChannel` is used. Both are
  measured.
- graph-flow keeps the current state of a session and nothing else: no channels with rules, no events, no history, no
  fence between two processes. Its saves overwrite one row. Without a store it keeps nothing, and ours keeps its log: there its
  figure is a ceiling, and there is no goal.
- adk-graph has no saver for PostgreSQL. Its fan-out is a node that runs another one many times, because it has no sends;
  graph-flow's is a fixed list of children.
- Without a checkpointer ours still keeps its log in memory, and events can be watched. The others keep nothing.
- The sides in Rust and in JavaScript run in one process with as many threads as they start by themselves. Python has
  its global lock: many threads at once share one core, which is how it is deployed.
- One machine, loopback, a database next to the programs. A network between them would make every side slower, and
  differences smaller.
";

pub(super) const REPEAT: &str = "
## Repeat it

<!-- not run: these are the benchmarks themselves, of minutes and hours -->

```sh
cargo xtask services up                         # PostgreSQL
cargo xtask bench all --against peers --json    # installs the peers on first use; half an hour
cargo xtask bench restate --json                # a Restate of its own, next to bare handlers; five minutes
cargo xtask bench server --against peers --aegra python3.12 --json    # servers over HTTP; a quarter of an hour
cargo xtask bench tenants                       # tenants of a server while one floods it; two minutes
cargo xtask bench scale                         # a million waiting threads in each store; an hour, and 10 GB of disk
cargo xtask bench page                          # this page
cargo xtask bench chain --against peers         # one bench, printed and not stored
```

The peers are installed into the user's cache from the lock files under `bench/`: Python 3.10 or newer with `venv`,
Node.js 20 or newer with `npm`, and a Rust toolchain are needed. LangGraph's server needs Python 3.11. Aegra needs Python 3.12
and takes part if `--aegra` names one. Run it on a machine that has nothing else to do.
";

const ON_RESTATE: &str = "\
Workers on a Restate of one node with four partitions, called over HTTP in turns by one load: it stores the request in the
request queue, calls the handler under the request's id, and does not look at the state afterwards, on any side. All servers, all
workers and the load share the cores. It was measured apart from the rest, at the commit in its own file.

- **Ours**: the graph as it comes. A chain of twenty steps of 1 KiB is one request, one segment, one journal entry, and a
  commit to PostgreSQL for every step.
- **Bare, one durable run**: a handler without any crate of ours. In one `ctx.run` it sends the very statements that ours
  sends, with the values that ours binds, prepared once, over as many connections. They are recorded on the wire from a
  worker of ours before the bench begins; what ours sends without waiting, it sends without waiting. It reads nothing out of the
  answers and computes nothing: what ours takes longer is what the machine, the driver and the journal cost.
- **Bare, a durable run a step**: twenty times `ctx.run` with one insert of 1 KiB, into a table with one index, and no queue. That
  is how most people would write it. It keeps less: no fence between two workers, no listing, nothing to search by.
- **Bare, calls between two runs**: a hundred calls of a service handler that writes one row, between two durable runs.
- Paused threads wait for an answer. The memory of the worker is compared with what it was after as many runs that ended.";

const OVER_HTTP: &str = "\
Servers over HTTP, called in turns by one load. A client creates a thread, runs a graph of five nodes on it, waits for the state,
and begins again; every node appends a line and emits an event. Clients keep their connections. All servers and the load share
the cores. It was measured apart from the rest, at the commit in its own file.

- **Ours**: the server as it comes, with the local engine. It stores a run before it executes it, and every step before the next
  one begins: in a file of SQLite with `synchronous=FULL`, or in PostgreSQL with `synchronous_commit=on`.
- **Bare driver, in process**: the same graph over the same kind of store by as many callers, without HTTP, without the row of a
  run, and without the row of a thread on which nothing has run.
- **LangGraph Agent Server (in memory)**: `langgraph dev` with its default settings, and without its logs. It runs threads in
  memory; the server of LangGraph that stores them in a database needs a licence.
- **Aegra**: on the same PostgreSQL server as ours, with its default settings: one process, which executes the runs itself.
- **First event of a stream**: from the request to the first event with a state.
- **Open streams**: on threads on which a step ran before the server started. Their memory is what the process of the server grows
  by when they are opened, the feeds of the threads included. A step writes when it ran, before it is stored, and a stream is as
  late as the event arrives after that.
- **Searches** are sent by one client, one after the other, to a server over that many threads.
- **archie serve** is built as `cargo install` builds it, and started with an empty folder. The time is from the start of its
  process to its first reply.";

const TENANTS: &str = "\
Five tenants share a server on SQLite, each with an API key and two limits: 100 requests per second and ten runs at once. Four of them create threads
and wait for runs of five nodes on them, twenty runs per second each. In every other round the fifth one sends 1,000 requests per second, each
to create a run. The server refuses nine tenths of them with 429, and executes the rest. Quiet and flooded rounds alternate; what counts is
the middle of five rounds. The load shares the cores with the server. It was measured apart from the rest.";

const SCALE: &str = "\
Threads that wait for an answer to one question, 300 bytes of state each, in one SQLite file and in one PostgreSQL of their own. One caller
does each work 500 times (a count 20 times), for another thread each time. Search, list and count are those of the checkpointer, by
values of the state. PostgreSQL is vacuumed and analyzed after each growth, as its daemon does. It was measured apart from the rest.";

/// The title of a bench, and what it does.
pub(super) fn about(bench: &str) -> (&'static str, &'static str) {
    match bench {
        "chain" => (
            "Chain",
            "Twenty nodes in a row over `{messages: append, step: int}`, one thread after the other.",
        ),
        "threads" => (
            "Many threads at once",
            "The chain on PostgreSQL by many threads at the same time. Ours, LangGraph and graph-flow have 16 connections.",
        ),
        "fanout" => (
            "Fan-out",
            "One node sends to many, a join counts what came. Ours stores each result as it comes.",
        ),
        "resume" => (
            "Answer to a paused thread",
            "A draft, a question, an answer: from the answer to the end of the run, which is two supersteps.",
        ),
        "loop" => (
            "Loop",
            "A planner and a tool take turns, two messages a turn: what 200 turns (80 KB of messages) weigh on disk. *One more* is \
             what each of 64 threads adds to a store that has 64.",
        ),
        "parked" => (
            "Paused threads",
            "Threads that wait for an answer after one message: what each weighs on disk.",
        ),
        "restate" => ("On Restate", ON_RESTATE),
        "server" => ("Over HTTP", OVER_HTTP),
        "tenants" => ("Tenants of a server", TENANTS),
        "scale" => ("Waiting threads, up to a million", SCALE),
        _ => ("Others", ""),
    }
}
