//! Long-term memory of agents: facts in the store, shared across threads and changed by patches. Each change records its
//! source, its reason and its labels.
//!
//! A memory is one item of the store, with its history inside, so a change is atomic. Concurrent changes to a memory are
//! applied one after the other. [`Memories::search`] compares embeddings by brute force, the same on every store. That is
//! fast enough for about ten thousand memories per owner; an index can replace it behind the same call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::Page;
use superstep_core::label::{Labeled, Labels};
use superstep_core::store::{Namespace, PutItem, Search, Store, StoreError};
use superstep_core::{NodeCx, Timestamp};
use superstep_llm::{Embedder, ModelError, cosine_similarity};

use crate::spans::now;

/// Memories of one owner (a person, a team, an agent), stored in one namespace.
#[derive(Clone)]
pub struct Memories {
    store: Arc<dyn Store>,
    namespace: Namespace,
    embedder: Option<Arc<dyn Embedder>>,
}

/// A remembered fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Key in the namespace.
    pub key: String,
    /// The fact, with its labels.
    pub value: Labeled<Json>,
    /// Number of the latest revision, counted from 1.
    pub revision: u64,
    /// Source of the latest revision.
    pub source: Source,
}

/// Who made a change, when and why. Stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Thread of the node that made the change; `None` if it came from outside of any graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Run of the node that made the change; `None` if it came from outside of any graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Reason, in words for a person.
    pub why: String,
    /// Wall-clock time of the change. The default timestamp if the stored item has none.
    #[serde(default)]
    pub at: Timestamp,
}

/// One change of a memory, as kept in its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Number of the revision, counted from 1.
    pub revision: u64,
    /// The JSON merge patch that was applied: fields it set, and `null` for fields it removed.
    pub patch: Json,
    /// Value after the change.
    pub value: Json,
    /// Labels after the change.
    pub labels: Labels,
    /// Who made the change, when and why.
    pub source: Source,
}

/// A search result.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryMatch {
    /// The memory that was found.
    pub memory: Memory,
    /// Similarity to the query; 1 means identical.
    pub score: f32,
}

/// Error from reading, writing or searching memories.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedder failed.
    #[error("a memory cannot be compared by its meaning: {0}")]
    Embedder(#[from] ModelError),
    /// [`Memories::search`] was called without an embedder.
    #[error(
        "these memories cannot be searched by meaning; give them an embedder with `Memories::with_embedder`"
    )]
    NoEmbedder,
    /// The item under the key is not a memory: another program wrote it.
    #[error("the item under `{key}` is not a memory: {why}")]
    NotAMemory {
        /// Key of the item.
        key: String,
        /// Why it does not decode.
        why: String,
    },
    /// The memory does not exist, or its history does not contain the revision.
    #[error("memory `{key}` has no revision {revision}; the last {HISTORY_MAX} are kept")]
    NoRevision {
        /// Key of the memory.
        key: String,
        /// The missing revision.
        revision: u64,
    },
    /// Concurrent writers won the compare-and-swap on every attempt.
    #[error("memory `{key}` is being changed by too many at once; try again")]
    Contended {
        /// Key of the memory.
        key: String,
    },
}

impl MemoryError {
    /// Error codes defined by this module. Errors of the store keep their own.
    pub const CODES: &'static [&'static str] = &[
        "memory-embedder",
        "memory-no-embedder",
        "memory-not-a-memory",
        "memory-no-revision",
        "memory-contended",
    ];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Embedder(_) => "memory-embedder",
            Self::NoEmbedder => "memory-no-embedder",
            Self::NotAMemory { .. } => "memory-not-a-memory",
            Self::NoRevision { .. } => "memory-no-revision",
            Self::Contended { .. } => "memory-contended",
        }
    }
}

/// Stored form of a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stored {
    memory: Labeled<Json>,
    revision: u64,
    source: Source,
    /// Embedding of the value; `None` if it was written without an embedder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    point: Option<Point>,
    /// The latest revisions, oldest first, including the current one.
    history: Vec<Revision>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Point {
    embedder: String,
    at: Vec<f32>,
}

impl Memories {
    /// Creates a handle to the memories in this namespace. Does not access the store.
    pub fn new(store: Arc<dyn Store>, namespace: Namespace) -> Self {
        Self {
            store,
            namespace,
            embedder: None,
        }
    }

    /// Sets the embedder, which [`Memories::search`] requires. Memories written without it are not found.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Loads the memory under a key.
    pub async fn get(&self, key: &str) -> Result<Option<Memory>, MemoryError> {
        let stored = self.stored(key).await?;
        Ok(stored.map(|stored| stored.into_memory(key)))
    }

    /// Changes the memory under a key, or creates it. The patch is a JSON merge patch: it sets the fields it contains and
    /// removes those that are `null` in it. A patch that is not an object replaces the whole value. The labels of the patch
    /// are added to those of the memory.
    pub async fn patch(
        &self,
        key: &str,
        patch: Labeled<Json>,
        source: Source,
    ) -> Result<Memory, MemoryError> {
        let (patch, labels) = patch.parts();
        let change = |before: Option<&Labeled<Json>>| {
            let before = before.cloned().unwrap_or_default();
            before
                .map(|value| patched(value, patch))
                .with(labels.clone())
        };
        self.change(key, patch, change, source).await
    }

    /// Restores the value of an earlier revision, as a new revision. Labels added since then stay, because data written under
    /// them may have been read.
    pub async fn revert(
        &self,
        key: &str,
        revision: u64,
        source: Source,
    ) -> Result<Memory, MemoryError> {
        let missing = || MemoryError::NoRevision {
            key: key.to_owned(),
            revision,
        };
        let history = self.history(key).await?;
        let back = history.into_iter().find(|past| past.revision == revision);
        let back = back.ok_or_else(missing)?;
        let change = |before: Option<&Labeled<Json>>| {
            let before = before.cloned().unwrap_or_default();
            before.map(|_| back.value.clone()).with(back.labels.clone())
        };
        self.change(key, &back.value, change, source).await
    }

    /// Returns the revisions of a memory, oldest first. Keeps the latest 100.
    pub async fn history(&self, key: &str) -> Result<Vec<Revision>, MemoryError> {
        let stored = self.stored(key).await?;
        Ok(stored.map(|stored| stored.history).unwrap_or_default())
    }

    /// Deletes a memory with its history. Returns whether it existed.
    pub async fn forget(&self, key: &str) -> Result<bool, MemoryError> {
        Ok(self.store.delete(&self.namespace, key).await?)
    }

    /// Returns the memories most similar in meaning to a text, most similar first.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Vec<MemoryMatch>, MemoryError> {
        let embedder = self.embedder.as_ref().ok_or(MemoryError::NoEmbedder)?;
        let wanted = embedder.embed(&[text.to_owned()]).await?;
        let wanted = wanted.points.into_iter().next().unwrap_or_default();
        let name = embedder.name().to_string();
        let mut found = Vec::new();
        for (key, stored) in self.all().await? {
            // Embeddings of different models are not comparable.
            let point = stored.point.as_ref().filter(|point| point.embedder == name);
            let Some(point) = point else {
                continue;
            };
            found.push(MemoryMatch {
                score: cosine_similarity(&wanted, &point.at),
                memory: stored.into_memory(&key),
            });
        }
        found.sort_by(|one, other| {
            let nearer = other.score.total_cmp(&one.score);
            nearer.then_with(|| one.memory.key.cmp(&other.memory.key))
        });
        found.truncate(limit);
        Ok(found)
    }

    async fn change(
        &self,
        key: &str,
        patch: &Json,
        make: impl Fn(Option<&Labeled<Json>>) -> Labeled<Json>,
        source: Source,
    ) -> Result<Memory, MemoryError> {
        for _ in 0..TRIES {
            let seen = self.store.get(&self.namespace, key, now()).await?;
            let seen = seen.map(|item| item.value);
            let before = seen.as_ref().map(|value| read(key, value)).transpose()?;
            let memory = make(before.as_ref().map(|before| &before.memory));
            let stored = self.next(before, memory, patch, &source).await?;
            let put = PutItem {
                namespace: self.namespace.clone(),
                key: key.to_owned(),
                value: serde_json::to_value(&stored).map_err(|error| not_a_memory(key, &error))?,
                ttl: None,
            };
            if self.store.put_if(seen.as_ref(), &put, now()).await? {
                return Ok(stored.into_memory(key));
            }
        }
        Err(MemoryError::Contended {
            key: key.to_owned(),
        })
    }

    async fn next(
        &self,
        before: Option<Stored>,
        memory: Labeled<Json>,
        patch: &Json,
        source: &Source,
    ) -> Result<Stored, MemoryError> {
        let (mut history, last) =
            before.map_or((Vec::new(), 0), |before| (before.history, before.revision));
        let (value, labels) = memory.parts();
        history.push(Revision {
            revision: last + 1,
            patch: patch.clone(),
            value: value.clone(),
            labels: labels.clone(),
            source: source.clone(),
        });
        let gone = history.len().saturating_sub(HISTORY_MAX);
        history.drain(..gone);
        Ok(Stored {
            point: self.point(value).await?,
            revision: last + 1,
            source: source.clone(),
            memory,
            history,
        })
    }

    async fn point(&self, value: &Json) -> Result<Option<Point>, MemoryError> {
        let Some(embedder) = &self.embedder else {
            return Ok(None);
        };
        let embedded = embedder.embed(&[words(value)]).await?;
        let point = embedded.points.into_iter().next();
        Ok(point.map(|at| Point {
            embedder: embedder.name().to_string(),
            at,
        }))
    }

    async fn stored(&self, key: &str) -> Result<Option<Stored>, MemoryError> {
        let item = self.store.get(&self.namespace, key, now()).await?;
        item.map(|item| read(key, &item.value)).transpose()
    }

    async fn all(&self) -> Result<Vec<(String, Stored)>, MemoryError> {
        let mut all = Vec::new();
        loop {
            let search = Search {
                tenant: self.namespace.tenant().to_owned(),
                prefix: self.namespace.segments().to_vec(),
                filters: Vec::new(),
                page: Page {
                    limit: PAGE,
                    offset: all.len() as u32,
                },
            };
            let items = self.store.search(&search, now()).await?;
            let count = items.len();
            for item in items {
                // Namespaces below this one belong to other owners.
                let stored = match item.namespace == self.namespace {
                    true => Some(read(&item.key, &item.value)?),
                    false => None,
                };
                all.push(stored.map(|stored| (item.key, stored)));
            }
            if count < PAGE as usize {
                return Ok(all.into_iter().flatten().collect());
            }
        }
    }
}

impl Source {
    /// Creates the source of a change made by a node.
    pub fn node(cx: &NodeCx, why: impl Into<String>) -> Self {
        Self {
            thread: Some(cx.thread().to_string()),
            run: Some(cx.run().to_string()),
            why: why.into(),
            at: now(),
        }
    }

    /// Creates the source of a change made by a person, or by a program outside of any graph.
    pub fn person(why: impl Into<String>) -> Self {
        Self {
            thread: None,
            run: None,
            why: why.into(),
            at: now(),
        }
    }
}

impl Stored {
    fn into_memory(self, key: &str) -> Memory {
        Memory {
            key: key.to_owned(),
            value: self.memory,
            revision: self.revision,
            source: self.source,
        }
    }
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memories")
            .field("namespace", &self.namespace)
            .field("embedder", &self.embedder)
            .finish_non_exhaustive()
    }
}

fn read(key: &str, value: &Json) -> Result<Stored, MemoryError> {
    Stored::deserialize(value).map_err(|error| not_a_memory(key, &error))
}

fn not_a_memory(key: &str, error: &serde_json::Error) -> MemoryError {
    MemoryError::NotAMemory {
        key: key.to_owned(),
        why: error.to_string(),
    }
}

/// Applies a JSON merge patch (RFC 7396).
fn patched(value: Json, patch: &Json) -> Json {
    let Json::Object(changes) = patch else {
        return patch.clone();
    };
    let mut fields = match value {
        Json::Object(fields) => fields,
        _ => Map::new(),
    };
    for (name, change) in changes {
        match change {
            Json::Null => drop(fields.remove(name)),
            change => {
                let before = fields.remove(name).unwrap_or(Json::Null);
                fields.insert(name.clone(), patched(before, change));
            }
        }
    }
    Json::Object(fields)
}

/// Returns the text to embed: the string itself, or the names and values of a structure, one per line.
fn words(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Object(fields) => {
            let lines = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", words(value)));
            lines.collect::<Vec<_>>().join("\n")
        }
        Json::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// Number of revisions kept per memory.
const HISTORY_MAX: usize = 100;

/// Attempts at a change while concurrent writers change the same memory.
const TRIES: u32 = 32;

const PAGE: u32 = 1_000;
