//! Tools with which the model reads more of the tree. They are read-only and limited to scanned files.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::NodeError;
use superstep_agent::{Asker, within_recorded};
use superstep_llm::structured::schema_of;
use superstep_llm::{Message, ToolCall, ToolChoice, ToolSpec};

use super::evidence::excerpt;
use super::scan::Tree;
use super::state::FileRead;
use super::workflow::asking::{Ask, Length, Said};

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadFile {
    /// Its path from the root.
    path: String,
    /// The first line wanted, from 1.
    #[serde(default)]
    line: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListFiles {
    /// A folder, from the root; empty for the root.
    #[serde(default)]
    folder: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FindSymbol {
    /// Its name.
    name: String,
}

/// Asks the model and lets it call tools until it answers. Every model call is recorded. Returns `None` if a person chose to
/// stop at a spending limit.
pub(super) async fn research(
    ask: &Ask<'_>,
    messages: Vec<Message>,
    tree: &Arc<Tree>,
) -> Result<Option<(Said<String>, Vec<FileRead>)>, NodeError> {
    let model = ask.model()?;
    let (mut request, warnings) = ask.request(&*model, messages, Length::Text).await?;
    request.tools = specs();
    let spending = ask.deps.spending.as_ref();
    within_recorded(spending, ask.cx, async |asker: &Asker<'_>| {
        let mut calls = Vec::new();
        let mut reads = Vec::new();
        loop {
            let is_last = calls.len() == ROUNDS_MAX;
            if is_last {
                request.tool_choice = ToolChoice::None;
            }
            let Some(reply) = asker.ask(&*model, &request).await? else {
                return Ok(None);
            };
            calls.push(ask.call(&reply));
            let wanted = reply.answer.tool_calls.clone();
            if wanted.is_empty() || is_last {
                let said = ask.completed(asker, &*model, request, reply, calls).await?;
                return Ok(Some((Said { warnings, ..said }, reads)));
            }
            request.messages.push(reply.message());
            for call in &wanted {
                let (result, read) = fetch(call, tree);
                reads.extend(read);
                request.messages.push(match result {
                    Ok(text) => Message::tool(call, text),
                    Err(why) => Message::tool_error(call, why),
                });
            }
        }
    })
    .await
}

fn specs() -> Vec<ToolSpec> {
    let spec = |name: &str, description: &str, schema: Json| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    };
    vec![
        spec(
            "read_file",
            "Reads a part of a file, with line numbers.",
            schema_of::<ReadFile>(),
        ),
        spec(
            "list_files",
            "Lists what is right in a folder.",
            schema_of::<ListFiles>(),
        ),
        spec(
            "find_symbol",
            "Says where something is defined.",
            schema_of::<FindSymbol>(),
        ),
    ]
}

/// Runs a tool call. An error is a message that the model reads.
fn fetch(call: &ToolCall, tree: &Tree) -> (Result<String, String>, Option<FileRead>) {
    let args = || call.args.clone();
    let bad = |error: serde_json::Error| error.to_string();
    match call.name.as_str() {
        "read_file" => match serde_json::from_value::<ReadFile>(args()).map_err(bad) {
            Ok(wanted) => read_file(&wanted, tree),
            Err(why) => (Err(why), None),
        },
        "list_files" => {
            let wanted = serde_json::from_value::<ListFiles>(args()).map_err(bad);
            (wanted.map(|wanted| list_files(&wanted.folder, tree)), None)
        }
        "find_symbol" => {
            let wanted = serde_json::from_value::<FindSymbol>(args()).map_err(bad);
            (wanted.map(|wanted| find_symbol(&wanted.name, tree)), None)
        }
        other => (Err(format!("there is no tool `{other}`")), None),
    }
}

fn read_file(wanted: &ReadFile, tree: &Tree) -> (Result<String, String>, Option<FileRead>) {
    let path = wanted.path.trim_start_matches("./");
    // Looks the path up in the scan, so that the model reads no file that git ignores or that is outside of the tree.
    let Some(file) = tree.file(path) else {
        return (Err(format!("the tree has no file `{path}`")), None);
    };
    let Some(text) = tree.read(path) else {
        return (Err(format!("`{path}` is not text")), None);
    };
    let read = FileRead {
        path: path.to_owned(),
        hash: file.hash_text(),
    };
    (Ok(excerpt(&text, wanted.line, LINES)), Some(read))
}

fn list_files(folder: &str, tree: &Tree) -> String {
    let folder = folder.trim_start_matches("./").trim_end_matches('/');
    let mut found: Vec<String> = tree
        .directories
        .iter()
        .filter(|path| path.rsplit_once('/').map_or("", |(above, _)| above) == folder)
        .map(|path| format!("{path}/"))
        .collect();
    found.extend(
        tree.files
            .iter()
            .filter(|file| file.folder() == folder)
            .map(|file| file.path.clone()),
    );
    let more = found.len().saturating_sub(LISTED_MAX);
    found.truncate(LISTED_MAX);
    let mut told = json!(found).to_string();
    if more > 0 {
        told.push_str(&format!("\nand {more} more"));
    }
    told
}

fn find_symbol(name: &str, tree: &Tree) -> String {
    let found: Vec<String> = tree
        .defined(name)
        .into_iter()
        .take(LISTED_MAX)
        .map(|(file, symbol)| format!("{}:{} ({:?})", file.path, symbol.line, symbol.kind))
        .collect();
    match found.is_empty() {
        true => format!("nothing is defined as `{name}`"),
        false => found.join("\n"),
    }
}

/// Maximum number of rounds of tool calls before the model must answer.
const ROUNDS_MAX: usize = 4;
const LINES: usize = 120;
const LISTED_MAX: usize = 100;
