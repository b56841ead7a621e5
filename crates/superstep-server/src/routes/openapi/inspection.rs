//! Schemas of what user interfaces ask under `/superstep`.

use serde_json::Value as Json;

use super::schema::*;

pub(super) fn schemas() -> Vec<NamedSchema> {
    vec![
        ("InboxItem", inbox_item()),
        ("ThreadInterrupt", interrupt()),
        ("CallTotals", call_totals()),
        ("RunQueue", queue()),
        ("QueuedRun", queued_run()),
        ("StoredSizes", sizes()),
        ("Budget", budget()),
        ("BudgetRaise", budget_raise()),
        ("CheckpointTree", tree()),
        ("StateDiffRequest", diff_request()),
        ("StateDiff", diff()),
        (
            "ForkPreviewRequest",
            object([required(
                "checkpoint",
                about(text(), "Id of the checkpoint to fork at"),
            )]),
        ),
        ("ForkPreview", fork_preview()),
        ("TestCase", test_case()),
        ("ThreadTrace", trace()),
        ("TraceSpan", span()),
        ("StateLabels", labels()),
    ]
}

fn call_totals() -> Json {
    object([
        required("model_calls", count()),
        required("input_tokens", count()),
        required("output_tokens", count()),
        required("nano_dollars", about(count(), "Billionths of a dollar")),
        required(
            "calls_of_unknown_cost",
            about(count(), "If not zero, the cost is a lower bound"),
        ),
    ])
}

fn inbox_item() -> Json {
    object([
        required("thread_id", uuid()),
        required("graph_id", text()),
        required("assistant_id", nullable(uuid())),
        required("run_id", nullable(uuid())),
        required("node", text()),
        required("checkpoint_ns", text()),
        required("kind", text()),
        required(
            "description",
            about(any(), "`description` of the interrupt's value"),
        ),
        required(
            "evidence",
            about(any(), "`evidence` of the interrupt's value"),
        ),
        required("asked_at", time()),
        required("age_ms", count()),
        required("deadline", nullable(time())),
        required("on_deadline", word(&["wait", "answer", "fail"])),
        required("is_overdue", boolean()),
        required("cost", named("CallTotals")),
        required("interrupt", named("Interrupt")),
    ])
}

fn interrupt() -> Json {
    object([
        required("id", about(text(), "The key of its answer in `resume`")),
        required("node", text()),
        required("kind", text()),
        required("asked_at", time()),
        required("value", any()),
        required("status", word(&["open", "answered", "closed"])),
        required("answer", about(any(), "`null` if there is none")),
        required(
            "answered_by",
            about(nullable(text()), "Principal; `null` if it is not known"),
        ),
        required("answered_at", nullable(time())),
    ])
}

fn sizes() -> Json {
    let section = || object([required("count", count()), required("bytes", count())]);
    object([
        required(
            "graph_id",
            about(
                nullable(text()),
                "Empty for threads that have no graph yet; `null` if the row is for all graphs",
            ),
        ),
        required(
            "thread_id",
            about(nullable(text()), "`null` if the row is for several threads"),
        ),
        required("threads", count()),
        required("bytes", about(count(), "Of all four kinds")),
        required("entries", section()),
        required("snapshots", section()),
        required("records", section()),
        required("interrupts", section()),
    ])
}

fn queued_run() -> Json {
    object([
        required("run_id", uuid()),
        required("thread_id", uuid()),
        required("assistant_id", uuid()),
        required("status", word(&["pending", "running"])),
        required("attempts", count()),
        required("created_at", time()),
        required("due_at", time()),
        required("age_ms", about(count(), "Since it could have started")),
    ])
}

fn queue() -> Json {
    object([
        required("pending", count()),
        required("running", count()),
        required(
            "is_complete",
            about(boolean(), "If not, the counts are lower bounds"),
        ),
        required("oldest_pending", nullable(named("QueuedRun"))),
        required("oldest_running", nullable(named("QueuedRun"))),
        required("runs", list(named("QueuedRun"))),
    ])
}

fn budget() -> Json {
    let amounts = || {
        about(
            fields_of(count()),
            "By meter, such as `tokens` or `nano_dollars`",
        )
    };
    let reserved = object([required("calls", count()), required("amounts", amounts())]);
    object([
        required("level", word(&["run", "thread", "tenant"])),
        required("thread_id", nullable(text())),
        required("run_id", nullable(uuid())),
        required("spent", nullable(amounts())),
        required("reserved", nullable(reserved)),
        required(
            "raised",
            about(nullable(amounts()), "Limits that a person raised"),
        ),
        required("updated_at", time()),
    ])
}

fn budget_raise() -> Json {
    let meters = [
        "tokens",
        "nano_dollars",
        "time_ms",
        "calls",
        "steps",
        "fan_out",
    ];
    let mut limits = object(meters.map(|meter| optional(meter, count())));
    limits["additionalProperties"] = false.into();
    object([
        required("level", word(&["run", "thread", "tenant"])),
        optional(
            "thread_id",
            about(nullable(text()), "Of the levels `run` and `thread`"),
        ),
        optional("run_id", about(nullable(uuid()), "Of the level `run`")),
        required("limits", about(limits, "The new limits")),
    ])
}

fn tree() -> Json {
    let checkpoint = object([
        required("checkpoint_id", text()),
        required("parent_checkpoint_id", nullable(text())),
        required("source", word(&["input", "loop", "update", "fork"])),
        required("step", integer()),
        required("next", list(text())),
        required("run_id", uuid()),
        required("created_at", time()),
        required("is_on_current_branch", boolean()),
    ]);
    let branch = object([
        required("checkpoint_id", about(text(), "Its newest checkpoint")),
        required("forked_from", nullable(text())),
        required("is_current", boolean()),
    ]);
    object([
        required("thread_id", uuid()),
        required("current", nullable(text())),
        required("checkpoints", about(list(checkpoint), "Newest first")),
        required(
            "branches",
            about(
                list(branch),
                "Those of the newest checkpoints; empty with `before`",
            ),
        ),
        required(
            "is_complete",
            about(boolean(), "Whether the thread has no older checkpoints"),
        ),
    ])
}

fn diff_request() -> Json {
    object([
        optional(
            "from",
            about(text(), "Id of a checkpoint. Default: the one before `to`"),
        ),
        optional(
            "to",
            about(text(), "Id of a checkpoint. Default: the newest"),
        ),
        optional(
            "other_thread",
            about(
                uuid(),
                "The thread of `to`; `from` is then the newest by default",
            ),
        ),
    ])
}

fn diff() -> Json {
    let side = || {
        object([
            required("thread_id", uuid()),
            required("checkpoint_id", nullable(text())),
        ])
    };
    let change = object([
        required("path", about(text(), "A JSON Pointer")),
        optional("before", about(any(), "Missing if there was nothing")),
        optional("after", about(any(), "Missing if there is nothing")),
        optional(
            "id",
            about(text(), "Id of the item, such as a message, that it is in"),
        ),
        optional(
            "subgraph",
            about(text(), "Nodes on the way to the subgraph that it is in"),
        ),
    ]);
    object([
        required("from", side()),
        required("to", side()),
        required("changes", list(change)),
    ])
}

fn class() -> Json {
    about(
        text(),
        "`read`, `idempotent`, `keyed`, `reconcilable`, `unsafe` or `unknown`",
    )
}

fn fork_preview() -> Json {
    let by_class = object([
        required("class", class()),
        required("calls", count()),
        required("tools", list(text())),
        required("effect", word(&["none", "same", "again", "unknown"])),
    ]);
    let call = object([
        required("tool", text()),
        required("class", class()),
        required("call_id", nullable(text())),
        required("node", text()),
        required("started_at", time()),
        required("error", nullable(text())),
    ]);
    object([
        required("thread_id", uuid()),
        required("checkpoint_id", text()),
        required(
            "until",
            about(
                nullable(text()),
                "The newest checkpoint that would be repeated",
            ),
        ),
        required("tools", list(by_class)),
        required("calls", list(call)),
        required("models", named("CallTotals")),
        required(
            "interrupts",
            about(count(), "Interrupts that would be raised again"),
        ),
    ])
}

fn test_case() -> Json {
    let interrupt = || {
        object([
            required("node", text()),
            required("kind", text()),
            required("request", any()),
        ])
    };
    let answer = object([
        required("to", about(count(), "Position in `asked`, from 0")),
        required("value", any()),
    ]);
    let act = object([
        optional("input", about(any(), "Input of a run")),
        optional("context", about(any(), "Context of the run")),
        optional(
            "asked",
            about(list(interrupt()), "Interrupts that were answered"),
        ),
        optional("answers", list(answer)),
        optional(
            "write",
            about(any(), "What was written together with the answers"),
        ),
    ]);
    let file = object([required("path", text()), required("base64", text())]);
    let script = object([
        required(
            "replies",
            about(list(fields()), "In the form of a script of `superstep-llm`"),
        ),
        optional("context_size", about(count(), "Not sent; add it by hand")),
    ]);
    let end = object([
        required("asked", list(interrupt())),
        required("values", any()),
    ]);
    object([
        required("format", count()),
        required("about", text()),
        required("graph_id", text()),
        required("thread_id", uuid()),
        required("checkpoint_id", text()),
        required("acts", about(list(act), "What callers did, in order")),
        required("models", list(text())),
        required("script", script),
        optional(
            "files",
            about(list(file), "Not sent; for who stores the case"),
        ),
        required("expected", end),
        required(
            "not_recovered",
            about(list(text()), "What the log does not hold"),
        ),
    ])
}

fn trace() -> Json {
    object([
        required("thread_id", uuid()),
        required("cost", named("CallTotals")),
        required("runs", list(named("TraceSpan"))),
        required(
            "is_complete",
            about(
                boolean(),
                "If not, the log is too long for one reply, and runs that began before its newest part are left out, also in `cost`",
            ),
        ),
    ])
}

fn span() -> Json {
    object([
        required("span_id", text()),
        required("name", text()),
        required(
            "kind",
            about(
                text(),
                "`run`, `wait`, `superstep`, `node`, or the kind of a call: `model`, `tool`",
            ),
        ),
        required("started_at", time()),
        required("ended_at", nullable(time())),
        required("duration_ms", nullable(count())),
        required("error", nullable(text())),
        required("cost", named("CallTotals")),
        required("attributes", fields()),
        required("spans", list(named("TraceSpan"))),
        optional("run_id", uuid()),
        optional("graph_id", text()),
        optional("node", text()),
        optional("step", integer()),
        optional("subgraph", any()),
        optional("attempt", integer()),
        optional("is_cached", boolean()),
        optional("outcome", text()),
        optional("model", text()),
        optional("input_tokens", count()),
        optional("output_tokens", count()),
        optional("nano_dollars", count()),
        optional("tool", text()),
        optional("tool_class", class()),
    ])
}

fn labels() -> Json {
    let origin = || {
        object([
            required("by", word(&["node", "input", "update"])),
            required("node", nullable(text())),
            required("checkpoint_id", text()),
            required("at", time()),
        ])
    };
    let value = object([
        required("path", about(text(), "A JSON Pointer into the state")),
        required("id", nullable(text())),
        required("labels", list(text())),
        required("origin", nullable(origin())),
    ]);
    let declassified = object([
        required("labels", list(text())),
        required("reason", text()),
        required("origin", origin()),
    ]);
    object([
        required("thread_id", uuid()),
        required("checkpoint_id", text()),
        required("values", list(value)),
        required("declassified", list(declassified)),
    ])
}
