//! Schemas of runs and crons.

use serde_json::Value as Json;

use super::schema::*;

pub(super) fn schemas() -> Vec<NamedSchema> {
    let stateful = || run_fields().into_iter().chain(thread_fields());
    let stateless = || run_fields().into_iter().chain(temporary_fields());
    let on_disconnect = || optional("on_disconnect", word(&["cancel", "continue"]));
    vec![
        ("Run", run()),
        (
            "Send",
            object([required("node", text()), required("input", any())]),
        ),
        ("Command", command()),
        ("RunCreateStateful", object(stateful())),
        ("RunCreateStateless", object(stateless())),
        (
            "RunCreateStreamingStateful",
            object(stateful().chain([on_disconnect()])),
        ),
        (
            "RunCreateStreamingStateless",
            object(stateless().chain([on_disconnect()])),
        ),
        ("RunBatchCreate", list(named("RunCreateStateless"))),
        ("RunsCancel", cancel()),
        ("Cron", cron()),
        (
            "CronCreate",
            cron_create([optional("on_run_completed", word(&["delete", "keep"]))]),
        ),
        (
            "ThreadCronCreate",
            cron_create([optional("multitask_strategy", word(STRATEGIES))]),
        ),
        ("CronPatch", cron_patch()),
        ("CronSearch", cron_search()),
        ("CronCountRequest", object(cron_filters())),
    ]
}

const STRATEGIES: &[&str] = &["reject", "rollback", "interrupt", "enqueue"];
const STREAM_MODES: &[&str] = &[
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
];

const STATUSES: [&str; 6] = [
    "pending",
    "running",
    "error",
    "success",
    "timeout",
    "interrupted",
];

fn run() -> Json {
    object([
        required("run_id", uuid()),
        required("thread_id", uuid()),
        required("assistant_id", uuid()),
        required("created_at", time()),
        required("updated_at", time()),
        required("status", word(&STATUSES)),
        required("metadata", fields()),
        required("kwargs", about(fields(), "What the caller sent")),
        required("multitask_strategy", word(STRATEGIES)),
        optional("langsmith_session_name", nullable(text())),
    ])
}

fn command() -> Json {
    let target = || either([text(), named("Send")]);
    object([
        optional("update", about(any(), "Channels to write, by name")),
        optional(
            "resume",
            about(
                any(),
                "The answer to an interrupt, or answers by interrupt id",
            ),
        ),
        optional("goto", nullable(either([target(), list(target())]))),
    ])
}

fn nodes() -> Json {
    about(either([text(), list(text())]), "Names of nodes, or `*`")
}

/// What runs and the runs of crons share.
fn shared_fields() -> Vec<Field> {
    vec![
        optional(
            "input",
            about(any(), "Channels to write, by name; `null` to resume"),
        ),
        optional("metadata", fields()),
        optional("config", named("Config")),
        optional("context", fields()),
        optional("webhook", text()),
        optional("interrupt_before", nodes()),
        optional("interrupt_after", nodes()),
        optional("stream_mode", words(STREAM_MODES)),
        optional("stream_subgraphs", boolean()),
        optional("stream_resumable", boolean()),
        optional("durability", word(&["sync", "async", "exit"])),
    ]
}

fn run_fields() -> Vec<Field> {
    let own = [
        required(
            "assistant_id",
            about(text(), "Id of an assistant, or name of a graph"),
        ),
        optional("command", nullable(named("Command"))),
        optional("feedback_keys", about(list(text()), "Ignored")),
        optional("after_seconds", about(number(), "Earliest start, from now")),
        optional(
            "checkpoint_during",
            about(boolean(), "Older name: `false` is `exit`"),
        ),
    ];
    own.into_iter().chain(shared_fields()).collect()
}

fn thread_fields() -> [Field; 4] {
    [
        optional("checkpoint", nullable(named("CheckpointConfig"))),
        optional("checkpoint_id", nullable(text())),
        optional("multitask_strategy", word(STRATEGIES)),
        optional("if_not_exists", word(&["create", "reject"])),
    ]
}

fn temporary_fields() -> [Field; 1] {
    [optional("on_completion", word(&["delete", "keep"]))]
}

fn cancel() -> Json {
    object([
        optional("status", word(&["pending", "running", "all"])),
        optional("thread_id", uuid()),
        optional("run_ids", list(uuid())),
    ])
}

fn cron() -> Json {
    object([
        required("cron_id", uuid()),
        required("assistant_id", uuid()),
        required(
            "thread_id",
            about(nullable(uuid()), "`null` if each run has its own"),
        ),
        required("user_id", nullable(text())),
        required("schedule", text()),
        required("timezone", nullable(text())),
        required("end_time", nullable(time())),
        required("next_run_date", nullable(time())),
        required("enabled", boolean()),
        optional("on_run_completed", nullable(text())),
        required("payload", about(fields(), "Arguments of its runs")),
        required("metadata", fields()),
        optional(
            "last_run",
            about(
                nullable(last_run()),
                "The last run that it made; `null` if it has made none",
            ),
        ),
        optional("last_error", about(any(), "Why the last tick made no run")),
        required("created_at", time()),
        required("updated_at", time()),
    ])
}

fn last_run() -> Json {
    object([
        required("run_id", uuid()),
        required("due_at", time()),
        required(
            "thread_id",
            about(nullable(uuid()), "`null` if the run was deleted"),
        ),
        required(
            "status",
            about(nullable(word(&STATUSES)), "`null` if the run was deleted"),
        ),
        required("error", about(any(), "Why it failed or was cancelled")),
        required("updated_at", nullable(time())),
    ])
}

fn schedule() -> Json {
    about(text(), "A cron expression with five fields")
}

fn cron_create(more: impl IntoIterator<Item = Field>) -> Json {
    let own = [
        required(
            "assistant_id",
            about(text(), "Id of an assistant, or name of a graph"),
        ),
        required("schedule", schedule()),
        optional("timezone", about(text(), "An IANA time zone. Default: UTC")),
        optional("end_time", time()),
        optional("enabled", boolean()),
    ];
    object(own.into_iter().chain(shared_fields()).chain(more))
}

fn cron_patch() -> Json {
    let own = [
        optional("schedule", schedule()),
        optional("timezone", text()),
        optional("end_time", nullable(time())),
        optional("enabled", boolean()),
        optional("on_run_completed", word(&["delete", "keep"])),
    ];
    object(own.into_iter().chain(shared_fields()))
}

fn cron_filters() -> Vec<Field> {
    vec![
        optional("assistant_id", text()),
        optional("thread_id", uuid()),
        optional("metadata", fields()),
    ]
}

fn cron_search() -> Json {
    let sorts = [
        "cron_id",
        "assistant_id",
        "thread_id",
        "next_run_date",
        "end_time",
        "created_at",
        "updated_at",
    ];
    let page = [
        optional("enabled", boolean()),
        optional("limit", limit(10)),
        optional("offset", offset()),
        optional("sort_by", word(&sorts)),
        optional("sort_order", sort_order()),
        optional("select", list(text())),
    ];
    object(cron_filters().into_iter().chain(page))
}
