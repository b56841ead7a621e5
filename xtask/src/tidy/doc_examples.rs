//! What a program of a user names has an example in its documentation, or is obvious.

use std::collections::BTreeSet;

use super::assert_tidy;
use super::files::{self, File};

/// Names that need no example, each for one of these reasons: it is an id or a constant that other examples use; it only
/// carries data that a documented method returns; its own methods have the examples; or it is implemented by stores, buses and
/// engines, which have a conformance suite or a crate to look at.
const OBVIOUS: &[&str] = &[
    "AnyGraph",
    "AnyRunResult",
    "Archive",
    "Channel",
    "ChannelKind",
    "ChannelSet",
    "Checkpoint",
    "Checkpointer",
    "Clock",
    "Driver",
    "Durability",
    "END",
    "Engine",
    "Epoch",
    "Event",
    "EventId",
    "FramePath",
    "Gotos",
    "HistoryEntry",
    "InterruptId",
    "LiveBus",
    "LiveDelivery",
    "LiveMessage",
    "LocalDriver",
    "MemoryCache",
    "Message",
    "NodeName",
    "NodeStore",
    "Payload",
    "RegisteredGraph",
    "RemoteDriver",
    "RequestEnd",
    "RunHandle",
    "RunId",
    "RunReport",
    "RunResult",
    "RunStream",
    "START",
    "SegmentEnd",
    "SegmentLimits",
    "Seq",
    "Siblings",
    "State",
    "StateUpdate",
    "Subscription",
    "Suspension",
    "Target",
    "TaskId",
    "ThreadId",
    "Timestamp",
    "WorkflowState",
    "WorkflowUpdate",
    "WorkflowValue",
];

/// Names that a crate's root exports. Modules, which begin with a small letter and are re-exported whole, have their own pages.
fn exported(root: &str) -> BTreeSet<&str> {
    let outside = root.split("pub mod ").next().unwrap_or_default();
    let uses = outside.split("pub use ").skip(1);
    let lists = uses.filter_map(|text| text.split(';').next());
    let names = lists.flat_map(|list| match list.split_once('{') {
        Some((_, names)) => names.trim_end_matches('}').split(',').collect::<Vec<_>>(),
        None => list.rsplit("::").take(1).collect(),
    });
    let starts_large = |name: &&str| name.starts_with(char::is_uppercase);
    names.map(str::trim).filter(starts_large).collect()
}

/// Items at the beginning of a line, with whether their documentation has an example.
fn items(source: &str) -> Vec<(&str, bool)> {
    let mut items = Vec::new();
    let mut has_example = false;
    for line in source.lines() {
        let words = line.strip_prefix("pub ").unwrap_or_default();
        let declared = ["struct ", "enum ", "trait ", "const ", "type "]
            .iter()
            .find_map(|kind| words.strip_prefix(kind));
        if let Some(rest) = declared {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            items.push((&rest[..end.unwrap_or(rest.len())], has_example));
        }
        // Attributes, also those of several lines, may stand between the documentation and the item.
        let goes_on = ["///", "//", "#[", " ", ")]"];
        let is_inside = goes_on.iter().any(|start| line.starts_with(start));
        has_example = is_inside && (has_example || line.starts_with("/// ```"));
    }
    items
}

fn without_example<'a>(root: &'a str, sources: &[File], obvious: &[&str]) -> Vec<&'a str> {
    let shown: BTreeSet<&str> = sources
        .iter()
        .flat_map(|file| items(&file.text))
        .filter_map(|(name, has_example)| has_example.then_some(name))
        .collect();
    let names = exported(root).into_iter();
    names
        .filter(|name| !shown.contains(name) && !obvious.contains(name))
        .collect()
}

#[test]
fn what_a_program_names_has_an_example() {
    let is_library = |file: &File| {
        let libraries = ["crates/superstep/src/", "crates/superstep-core/src/"];
        libraries.iter().any(|folder| file.path.starts_with(folder))
    };
    let sources: Vec<File> = files::all().into_iter().filter(is_library).collect();
    let root = sources
        .iter()
        .find(|file| file.path == "crates/superstep/src/lib.rs");
    let root = root.expect("the crate has a root").text.clone();
    let missing = without_example(&root, &sources, OBVIOUS);
    let told =
        |name: &&str| format!("`{name}` has no example: write one, or say that it is obvious");
    assert_tidy(&missing.iter().map(told).collect::<Vec<_>>());
}

#[test]
fn an_item_without_an_example_is_found() {
    let root =
        "mod a;\npub use a::{Shown, Bare,\n    Plain};\npub use b::Other;\npub use c::{d, e};\n";
    let source = File::new(
        "crates/a/src/a.rs",
        "/// ```\n/// x\n/// ```\n#[derive(\n    Debug,\n)]\npub struct Shown<T>(T);\n\n/// Bare.\npub enum Bare {}\n",
    );
    let missing = without_example(root, &[source], &["Plain"]);
    assert_eq!(missing, ["Bare", "Other"]);
}
