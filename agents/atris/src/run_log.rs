//! Updates and transitions of each node in the last run of a thread, read from its log, for debugging.

use archie_agent::each_entry;
use serde_json::Value as Json;
use superstep::AnyThread;
use superstep::checkpoint::format::{Change, TaskWrite};
use superstep::{Seq, Value};
use superstep_llm::Secret;

use crate::connector::remove_secrets;

/// Update of one node.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(super) struct NodeUpdate {
    pub(super) node: String,
    /// Only the fields that the node wrote.
    pub(super) update: Json,
    /// Requests that the node made, as it reported them.
    pub(super) requests: Vec<String>,
}

/// Returns the updates of the last run, in order.
pub(super) async fn last_run(thread: &dyn AnyThread) -> anyhow::Result<Vec<NodeUpdate>> {
    let mut written = Vec::new();
    each_entry(thread, Seq(0), |past| {
        for change in &past.entry.changes {
            match change {
                Change::RunStarted(_) => written.clear(),
                Change::FrameAdvanced(advanced) => {
                    for write in &advanced.writes {
                        add(write, &mut written)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    })
    .await?;
    Ok(written)
}

fn add(write: &TaskWrite, written: &mut Vec<NodeUpdate>) -> anyhow::Result<()> {
    let request = |event: &Value| {
        let event: Json = event.decode().ok()?;
        (event["event"] == "request").then(|| event["text"].as_str().map(str::to_owned))?
    };
    let requests: Vec<_> = write.events.iter().filter_map(request).collect();
    for update in &write.updates {
        written.push(NodeUpdate {
            node: write.node.to_string(),
            update: update.decode()?,
            requests: requests.clone(),
        });
    }
    Ok(())
}

/// The whole state before and after a node ran.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Transition {
    /// Name of the node. Several, if they ran at the same time.
    pub node: String,
    /// Sequence number of the checkpoint after the node.
    pub seq: u64,
    /// State that the node saw.
    pub before: Json,
    /// State with the node's update.
    pub after: Json,
}

/// Returns the transitions of the last run, in order, with `secrets` removed. A node that waits for a person has none yet.
pub async fn transitions(
    thread: &dyn AnyThread,
    secrets: &[Secret],
) -> anyhow::Result<Vec<Transition>> {
    let mut steps: Vec<(Seq, Seq, String)> = Vec::new();
    let mut before = Seq(0);
    each_entry(thread, Seq(0), |past| {
        for change in &past.entry.changes {
            match change {
                Change::RunStarted(_) => steps.clear(),
                Change::FrameAdvanced(advanced) if !advanced.writes.is_empty() => {
                    let nodes: Vec<String> = advanced
                        .writes
                        .iter()
                        .map(|write| write.node.to_string())
                        .collect();
                    steps.push((before, past.seq, nodes.join(" ")));
                }
                _ => {}
            }
        }
        before = past.seq;
        Ok(())
    })
    .await?;
    let mut found = Vec::new();
    for (before, after, node) in steps {
        found.push(Transition {
            node,
            seq: after.0,
            before: state_at(thread, before, secrets).await?,
            after: state_at(thread, after, secrets).await?,
        });
    }
    Ok(found)
}

async fn state_at(thread: &dyn AnyThread, seq: Seq, secrets: &[Secret]) -> anyhow::Result<Json> {
    let state = thread.state(Some(seq)).await?;
    let mut values: Json = state.map_or(Ok(Json::Null), |state| state.values.decode())?;
    remove_secrets(&mut values, secrets.iter().map(Secret::expose));
    Ok(values)
}

/// Formats an update in one line: `+queryType trending_tracks +categories 2`, with `-query` for a cleared field.
pub(super) fn line(written: &NodeUpdate) -> String {
    let mut fields = Vec::new();
    for (name, value) in written.update.as_object().into_iter().flatten() {
        fields.push(match value {
            Json::Null => format!("-{name}"),
            Json::Array(items) => format!("+{name} {}", items.len()),
            Json::Object(inner) => match inner.get("id").and_then(Json::as_str) {
                Some(id) => format!("+{name} {id}"),
                None => format!("+{name} {}", short(&value.to_string())),
            },
            Json::String(text) => format!("+{name} {}", short(text)),
            other => format!("+{name} {other}"),
        });
    }
    let requests: String = written
        .requests
        .iter()
        .map(|request| format!(" {request} "))
        .collect();
    format!("{} {requests} {}", written.node, fields.join(" "))
}

fn short(text: &str) -> String {
    let shown = super::answer::shown(text);
    match shown.char_indices().nth(SHORT_CHARS) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

const SHORT_CHARS: usize = 60;
