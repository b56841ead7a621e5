//! Preferences that a model worded and the person has not confirmed. They have no effect.
//!
//! A proposal waits in the long-term store until the person accepts it, which adds its line to the list, or rejects it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use superstep::label::{Label, Labeled, Labels};
use superstep::store::{Namespace, Store};
use superstep_agent::memory::{Memories, MemoryError, Source};

use super::memory::{Change, ChangeSource, Preferences, apply_change, get_memory};
use super::state::Learned;

/// A line that waits for the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// List that the line is for.
    pub list: Preferences,
    /// The line.
    pub line: String,
    /// Line of the list that it replaces; empty if it replaces none.
    #[serde(default)]
    pub replaces: String,
    /// What the line was learned from, in words for a person.
    pub why: String,
    /// When it was proposed, in milliseconds since 1970.
    #[serde(default)]
    pub at: i64,
}

impl Proposal {
    /// Returns the change that accepting it makes, in the form that the thread's state has.
    pub fn learned(&self, id: &str) -> Learned {
        let gone = Some(&self.replaces).filter(|line| !line.is_empty());
        let gone = gone.map(|line| format!("- {line}"));
        let come = format!("+ {}", self.line);
        Learned {
            memory: self.list.name().to_owned(),
            diff: gone.into_iter().chain([come]).collect(),
            proposal: id.to_owned(),
        }
    }
}

/// Returns the open proposals by id, and the labels of the data they were made from.
pub async fn proposals(
    store: &Arc<dyn Store>,
) -> Result<(BTreeMap<String, Proposal>, Labels), MemoryError> {
    let found = memories(store)?.get(KEY).await?;
    Ok(found.map_or_else(Default::default, |memory| {
        let (value, labels) = memory.value.parts();
        (read(value), labels.clone())
    }))
}

/// Stores a proposal under an id made of the key, and returns the id. A second attempt with the same key changes nothing.
pub(super) async fn propose(
    store: &Arc<dyn Store>,
    proposal: &Proposal,
    because: ChangeSource,
) -> Result<String, MemoryError> {
    let id = id_of(&because.key);
    let memories = memories(store)?;
    let mut patch = Map::from_iter([(id.clone(), json!(proposal))]);
    let (open, _) = proposals(store).await?;
    if open.len() >= OPEN_MAX {
        let oldest = open.iter().min_by_key(|(_, proposal)| proposal.at);
        patch.extend(oldest.map(|(id, _)| (id.clone(), Json::Null)));
    }
    let labels = because.labels.with(Label::PRIVATE);
    let patch = Labeled::new(Json::Object(patch), labels);
    memories.patch(KEY, patch, because.source).await?;
    Ok(id)
}

/// Returns the proposal that an attempt with this key stored earlier, so that a repeated attempt need not ask the model again:
/// an open one, or one that the person has decided about since.
pub(super) async fn proposed_before(
    store: &Arc<dyn Store>,
    key: &str,
) -> Result<Option<Learned>, MemoryError> {
    let id = id_of(key);
    let past = memories(store)?.history(KEY).await?;
    let mut past = past.iter().rev().map(|revision| read(&revision.value));
    Ok(past.find_map(|mut open| Some(open.remove(&id)?.learned(&id))))
}

/// Adds the line of a proposal to its list. Returns the change, or `None` if the list has the line already.
pub async fn accept(
    store: &Arc<dyn Store>,
    id: &str,
    proposal: &Proposal,
    by: &str,
) -> Result<Option<Learned>, MemoryError> {
    let which = proposal.list;
    let (lines, _) = get_memory(store, which, which.default_lines()).await?;
    // The list may have changed since, so the replaced line is found by its text and not by its number.
    let replaced = lines.iter().position(|line| *line == proposal.replaces);
    let change = Change {
        line: proposal.line.clone(),
        replaces: replaced.map_or(0, |at| at + 1),
    };
    let (_, labels) = proposals(store).await?;
    let because = ChangeSource {
        key: id.to_owned(),
        source: Source::person(format!("{}, accepted by {by}", proposal.why)),
        labels,
    };
    let learned = apply_change(store, which, &change, because).await?;
    discard(store, id, &format!("accepted by {by}")).await?;
    Ok(learned)
}

/// Discards a proposal.
pub async fn reject(store: &Arc<dyn Store>, id: &str, by: &str) -> Result<(), MemoryError> {
    discard(store, id, &format!("rejected by {by}")).await
}

async fn discard(store: &Arc<dyn Store>, id: &str, why: &str) -> Result<(), MemoryError> {
    let patch = Labeled::new(json!({ id: null }), Labels::NONE);
    memories(store)?
        .patch(KEY, patch, Source::person(why))
        .await?;
    Ok(())
}

fn memories(store: &Arc<dyn Store>) -> Result<Memories, MemoryError> {
    let namespace = Namespace::new(["email_assistant", "proposed_preferences"])?;
    Ok(Memories::new(store.clone(), namespace))
}

/// Reads the proposals of a stored value. A later version may have written one in a form that this one does not know.
fn read(value: &Json) -> BTreeMap<String, Proposal> {
    let fields = value.as_object().into_iter().flatten();
    let known = fields.filter_map(|(id, proposal)| {
        Some((id.clone(), serde_json::from_value(proposal.clone()).ok()?))
    });
    known.collect()
}

fn id_of(key: &str) -> String {
    key.chars().take(ID_CHARS).collect()
}

const KEY: &str = "proposals";
const ID_CHARS: usize = 12;
/// Maximum number of open proposals; another one takes the place of the oldest.
const OPEN_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use superstep::store::MemoryStore;

    use super::*;

    fn because(key: &str) -> ChangeSource {
        ChangeSource {
            key: key.to_owned(),
            source: Source::person("a mail"),
            labels: Labels::NONE.with(Label::UNTRUSTED),
        }
    }

    fn proposal(line: &str, replaces: &str) -> Proposal {
        Proposal {
            list: Preferences::Response,
            line: line.to_owned(),
            replaces: replaces.to_owned(),
            why: "mail \"Hi\"".to_owned(),
            at: 0,
        }
    }

    async fn lines(store: &Arc<dyn Store>) -> Vec<String> {
        let which = Preferences::Response;
        let list = get_memory(store, which, which.default_lines()).await;
        list.unwrap().0
    }

    #[tokio::test]
    async fn a_proposal_changes_nothing_until_it_is_accepted_and_is_undone_after() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let before = lines(&store).await;
        let proposal = proposal("Name a day.", &before[0]);
        let id = propose(&store, &proposal, because("0123456789abcdef"))
            .await
            .unwrap();
        assert_eq!(lines(&store).await, before);
        assert_eq!(proposals(&store).await.unwrap().0[&id], proposal);
        let learned = accept(&store, &id, &proposal, "ada")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            learned.diff,
            [format!("- {}", before[0]), "+ Name a day.".to_owned()]
        );
        let after = lines(&store).await;
        assert_eq!(after[..2], before[1..]);
        assert_eq!(after[2], "Name a day.");
        assert!(proposals(&store).await.unwrap().0.is_empty());
        let memories = Preferences::Response.memories(&store).unwrap();
        let memory = memories.get("user_preferences").await.unwrap().unwrap();
        assert!(memory.value.parts().1.has(&Label::UNTRUSTED));
        assert!(
            memory
                .source
                .why
                .starts_with("mail \"Hi\", accepted by ada"),
            "{memory:?}"
        );
        memories
            .revert("user_preferences", 1, Source::person("undo"))
            .await
            .unwrap();
        assert_eq!(lines(&store).await, before);
    }

    #[tokio::test]
    async fn a_repeated_attempt_finds_its_proposal_also_after_a_decision() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let key = "0123456789abcdef";
        assert_eq!(proposed_before(&store, key).await.unwrap(), None);
        let proposal = proposal("Name a day.", "");
        let id = propose(&store, &proposal, because(key)).await.unwrap();
        reject(&store, &id, "ada").await.unwrap();
        let again = proposed_before(&store, key).await.unwrap().unwrap();
        assert_eq!(
            (again.diff, again.proposal),
            (vec!["+ Name a day.".to_owned()], id)
        );
        assert!(proposals(&store).await.unwrap().0.is_empty());
    }

    #[tokio::test]
    async fn there_are_never_more_than_fifty_and_the_oldest_goes() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        for at in 0..OPEN_MAX + 1 {
            let proposal = Proposal {
                at: at as i64,
                ..proposal(&format!("Line {at}."), "")
            };
            propose(&store, &proposal, because(&format!("{at:012}")))
                .await
                .unwrap();
        }
        let (open, _) = proposals(&store).await.unwrap();
        assert_eq!(open.len(), OPEN_MAX);
        assert!(!open.contains_key("000000000000"));
    }
}
