//! What the assistant has learned about its user: three lists of lines in the long-term store.
//!
//! The assistant never replaces a list as a whole. A change adds a line, removes one, or both, and the store keeps its reason
//! and the earlier revision. What a model words is a proposal first (see [`crate::proposals`]). The model that words a line does not see the email's body. It sees the email's sender and subject
//! and what the person did, which includes excerpts of arguments that the person changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use superstep::label::{Label, Labeled, Labels};
use superstep::store::{Namespace, Store};
use superstep_agent::memory::{Memories, MemoryError, Revision, Source};

use super::state::Learned;

/// A list of preferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Preferences {
    /// Which emails matter.
    #[serde(rename = "triage_preferences")]
    Triage,
    /// How to write replies.
    #[serde(rename = "response_preferences")]
    Response,
    /// How to schedule meetings.
    #[serde(rename = "cal_preferences")]
    Calendar,
}

impl Preferences {
    /// All lists.
    pub const ALL: [Self; 3] = [Self::Triage, Self::Response, Self::Calendar];

    /// Returns the list's name, the last part of its namespace in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Triage => "triage_preferences",
            Self::Response => "response_preferences",
            Self::Calendar => "cal_preferences",
        }
    }

    /// Returns the lines that apply until the assistant has learned something, as Markdown list items.
    pub fn default_lines(self) -> &'static str {
        match self {
            Self::Triage => include_str!("prompts/triage_preferences.md"),
            Self::Response => include_str!("prompts/response_preferences.md"),
            Self::Calendar => include_str!("prompts/cal_preferences.md"),
        }
    }

    /// Opens the memories of this list in `store`.
    pub fn memories(self, store: &Arc<dyn Store>) -> Result<Memories, MemoryError> {
        let namespace = Namespace::new(["email_assistant", self.name()])?;
        Ok(Memories::new(store.clone(), namespace))
    }
}

/// Key of the list within its namespace.
pub const KEY: &str = "user_preferences";

/// Returns the lines of a list and the labels of the data they were made from. If the store has no list yet, returns the lines
/// of `default` without labels.
pub async fn get_memory(
    store: &Arc<dyn Store>,
    which: Preferences,
    default: &str,
) -> Result<(Vec<String>, Labels), MemoryError> {
    let found = which.memories(store)?.get(KEY).await?;
    Ok(match found {
        None => (lines_of(default), Labels::NONE),
        Some(memory) => {
            let (value, labels) = memory.value.parts();
            (keyed(value).into_values().collect(), labels.clone())
        }
    })
}

/// A change of one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Line to add, cut to 200 characters; empty to add none.
    pub line: String,
    /// Number of the line to remove, counted from 1; 0, or a number past the end, removes none.
    pub replaces: usize,
}

/// Who changes a list, and why.
#[derive(Debug)]
pub struct ChangeSource {
    /// Idempotency key of the change: the same in every attempt. The first 12 characters are stored.
    pub key: String,
    /// Author and reason, stored with the revision.
    pub source: Source,
    /// Labels of the data that the line was made from. The change adds `private`.
    pub labels: Labels,
}

/// Applies a change to a list and returns the difference, or `None` if it changes nothing. A second attempt with the same key
/// changes nothing and returns the same difference.
pub async fn apply_change(
    store: &Arc<dyn Store>,
    which: Preferences,
    change: &Change,
    because: ChangeSource,
) -> Result<Option<Learned>, MemoryError> {
    let memories = which.memories(store)?;
    let mark: String = because.key.chars().take(MARK_CHARS).collect();
    let before = match memories.get(KEY).await? {
        Some(memory) => memory,
        None => {
            let lines = numbered(&lines_of(which.default_lines()));
            let source = Source::person("what is usual");
            memories
                .patch(KEY, Labeled::new(Json::Object(lines), Labels::NONE), source)
                .await?
        }
    };
    if let Some(done) = changed_before(store, which, &because.key).await? {
        return Ok(Some(done));
    }
    let (value, _) = before.value.parts();
    let Some(patch) = patch(value, change, &mark) else {
        return Ok(None);
    };
    let was = value.clone();
    let labels = because.labels.with(Label::PRIVATE);
    let source = Source {
        why: format!("{} [{mark}]", because.source.why),
        ..because.source
    };
    let after = memories
        .patch(KEY, Labeled::new(patch, labels), source)
        .await?;
    Ok(learned(which, &was, after.value.parts().0))
}

/// Returns the difference that a change with this key made earlier.
pub async fn changed_before(
    store: &Arc<dyn Store>,
    which: Preferences,
    key: &str,
) -> Result<Option<Learned>, MemoryError> {
    let mark: String = key.chars().take(MARK_CHARS).collect();
    let past = which.memories(store)?.history(KEY).await?;
    let done = past.iter().position(|revision| is_marked(revision, &mark));
    Ok(done.and_then(|done| {
        let was = done.checked_sub(1).map(|before| &past[before].value);
        learned(which, was.unwrap_or(&Json::Null), &past[done].value)
    }))
}

/// Returns the removed and added lines between two revisions of a list, prefixed with `- ` and `+ `.
pub fn diff(before: &Json, after: &Json) -> Vec<String> {
    let (before, after) = (keyed(before), keyed(after));
    let gone = before
        .iter()
        .filter(|(key, line)| after.get(*key) != Some(*line));
    let gone = gone.map(|(_, line)| format!("- {line}"));
    let come = after
        .iter()
        .filter(|(key, line)| before.get(*key) != Some(*line));
    gone.chain(come.map(|(_, line)| format!("+ {line}")))
        .collect()
}

fn learned(which: Preferences, before: &Json, after: &Json) -> Option<Learned> {
    let diff = diff(before, after);
    (!diff.is_empty()).then(|| Learned {
        memory: which.name().to_owned(),
        diff,
        proposal: String::new(),
    })
}

fn is_marked(revision: &Revision, mark: &str) -> bool {
    revision.source.why.ends_with(&format!("[{mark}]"))
}

fn patch(value: &Json, change: &Change, mark: &str) -> Option<Json> {
    let lines = keyed(value);
    let line: String = change.line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(LINE_CHARS).collect();
    let replaced = change
        .replaces
        .checked_sub(1)
        .and_then(|at| lines.keys().nth(at));
    let is_new = !line.is_empty() && !lines.values().any(|known| *known == line);
    if !is_new && replaced.is_none() {
        return None;
    }
    let mut patch = Map::new();
    if let Some(key) = replaced {
        patch.insert(key.clone(), Json::Null);
    }
    if is_new {
        let last = lines
            .keys()
            .last()
            .and_then(|key| key.split('-').next()?.parse::<u32>().ok());
        let key = format!("{:04}-{mark}", last.unwrap_or(0) + 1);
        patch.insert(key, json!(line));
    }
    Some(Json::Object(patch))
}

/// Returns the lines by key. The keys sort in the order of the list.
fn keyed(value: &Json) -> BTreeMap<String, String> {
    let fields = value.as_object().into_iter().flatten();
    let lines = fields.filter_map(|(key, line)| Some((key.clone(), line.as_str()?.to_owned())));
    lines.collect()
}

fn numbered(lines: &[String]) -> Map<String, Json> {
    let keys = lines.iter().enumerate();
    keys.map(|(at, line)| (format!("{:04}", at + 1), json!(line)))
        .collect()
}

fn lines_of(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches("- ").trim());
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

const MARK_CHARS: usize = 12;
const LINE_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use superstep::store::MemoryStore;

    use super::*;

    fn because(key: &str) -> ChangeSource {
        ChangeSource {
            key: key.to_owned(),
            source: Source::person("said so"),
            labels: Labels::NONE,
        }
    }

    #[tokio::test]
    async fn e9_a_list_changes_by_lines_and_only_once_for_one_reason() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let which = Preferences::Response;
        let (before, _) = get_memory(&store, which, which.default_lines())
            .await
            .unwrap();
        let change = Change {
            line: "Name a day  and a time.".to_owned(),
            replaces: 0,
        };
        for _ in 0..2 {
            let learned = apply_change(&store, which, &change, because("k1"))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(learned.diff, ["+ Name a day and a time."]);
            let (lines, labels) = get_memory(&store, which, "").await.unwrap();
            assert_eq!(lines.len(), before.len() + 1);
            assert_eq!(lines[..before.len()], before);
            assert!(labels.has(&Label::PRIVATE));
        }
        let other = Change {
            line: "Be brief.".to_owned(),
            replaces: before.len() + 1,
        };
        let learned = apply_change(&store, which, &other, because("k2"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(learned.diff, ["- Name a day and a time.", "+ Be brief."]);
        let memories = which.memories(&store).unwrap();
        let past = memories.history(KEY).await.unwrap();
        assert_eq!(past.len(), 3);
        memories
            .revert(KEY, 2, Source::person("back"))
            .await
            .unwrap();
        let (lines, _) = get_memory(&store, which, "").await.unwrap();
        assert_eq!(lines.last().unwrap(), "Name a day and a time.");
    }

    #[tokio::test]
    async fn what_is_known_already_changes_nothing() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let which = Preferences::Triage;
        let (known, _) = get_memory(&store, which, which.default_lines())
            .await
            .unwrap();
        let change = Change {
            line: known[0].clone(),
            replaces: 0,
        };
        assert_eq!(
            apply_change(&store, which, &change, because("k"))
                .await
                .unwrap(),
            None
        );
    }
}
