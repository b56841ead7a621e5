//! The targets, one file for each kind of bytes.

mod answers;
mod archive;
mod calendar;
mod checkpoint;
mod formula;
mod live_packet;
mod mail;
mod manifest;
mod markdown;
mod mcp;
mod model_stream;
mod openapi;
mod pdf;
mod plan;
mod project;
mod schedule;
mod settings;
mod shell_line;
mod workbook;

use crate::Target;

const fn target(name: &'static str, run: fn(&[u8]), bytes_max: usize) -> Target {
    Target {
        name,
        run,
        bytes_max,
    }
}

/// All of them, by name.
pub const TARGETS: &[Target] = &[
    target("answers", answers::run, 4 << 10),
    target("archive", archive::run, 16 << 10),
    target("calendar", calendar::run, 8 << 10),
    target("checkpoint", checkpoint::run, 8 << 10),
    target("formula", formula::run, 1 << 10),
    target("live-packet", live_packet::run, 4 << 10),
    target("mail", mail::run, 16 << 10),
    target("manifest", manifest::run, 16 << 10),
    target("markdown", markdown::run, 4 << 10),
    target("mcp", mcp::run, 8 << 10),
    target("model-stream", model_stream::run, 8 << 10),
    target("openapi", openapi::run, 16 << 10),
    target("pdf", pdf::run, 8 << 10),
    target("plan", plan::run, 4 << 10),
    target("project", project::run, 8 << 10),
    target("schedule", schedule::run, 128),
    target("settings", settings::run, 4 << 10),
    target("shell-line", shell_line::run, 1 << 10),
    target("workbook", workbook::run, 32 << 10),
];

/// Splits off the first byte, which chooses between the readers of one format.
fn choice(bytes: &[u8]) -> (u8, &[u8]) {
    match bytes.split_first() {
        Some((&first, rest)) => (first, rest),
        None => (0, bytes),
    }
}

/// The text of an input; none for what no reader of text is given.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
