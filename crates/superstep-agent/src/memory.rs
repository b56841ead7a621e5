//! What agents remember across threads: facts in the long-term store, changed by patches, each with who wrote it and why,
//! its labels and its past.
//!
//! A memory is one item of the store, its past within it, so that a change is there whole or not at all; two who change it at
//! once both get through, one after the other. [`Memories::search`] compares meanings exactly, point by point, on every store
//! alike; that is quick for some ten thousand memories of one owner, and an index can take its place behind the same call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::Page;
use superstep_core::label::{Labeled, Labels};
use superstep_core::store::{Namespace, PutItem, Search, Store, StoreError};
use superstep_core::{NodeCx, Timestamp};
use superstep_llm::{Embedder, ModelError, likeness};

use crate::spans::now;

/// The memories of one owner: a person, a team, an agent.
#[derive(Clone)]
pub struct Memories {
    store: Arc<dyn Store>,
    namespace: Namespace,
    embedder: Option<Arc<dyn Embedder>>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// What it is known by.
    pub key: String,
    /// What is remembered, with its labels.
    pub value: Labeled<Json>,
    /// How often it was written.
    pub revision: u64,
    /// Who wrote it last.
    pub source: Source,
}

/// Where a change came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The thread, if it was written by a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Why, in words for a person.
    pub why: String,
    /// When.
    #[serde(default)]
    pub at: Timestamp,
}

/// A change of a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Its number, from 1.
    pub revision: u64,
    /// What was changed: fields that were set, and `null` for those that were removed.
    pub patch: Json,
    /// What came of it.
    pub value: Json,
    /// The labels it had then.
    pub labels: Labels,
    /// Who did it.
    pub source: Source,
}

/// A memory that was found, and how near it is to what was looked for: 1 is the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The memory.
    pub memory: Memory,
    /// How near.
    pub likeness: f32,
}

/// Why a memory could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedder failed.
    #[error("a memory cannot be compared by its meaning: {0}")]
    Embedder(#[from] ModelError),
    /// There is no embedder.
    #[error(
        "these memories cannot be searched by meaning; give them an embedder with `Memories::with_embedder`"
    )]
    NoEmbedder,
    /// Something else is under the key.
    #[error("the item under `{key}` is not a memory: {why}")]
    NotAMemory {
        /// The key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such memory, or not with this past.
    #[error("memory `{key}` has no revision {revision}; the last {HISTORY_MAX} are kept")]
    NoRevision {
        /// The key.
        key: String,
        /// The revision.
        revision: u64,
    },
    /// Others changed it again and again.
    #[error("memory `{key}` is being changed by too many at once; try again")]
    Contended {
        /// The key.
        key: String,
    },
}

impl MemoryError {
    /// The codes that are this module's own.
    pub const CODES: &'static [&'static str] = &[
        "memory-embedder",
        "memory-no-embedder",
        "memory-not-a-memory",
        "memory-no-revision",
        "memory-contended",
    ];

    /// The stable code of this error: the name of its page in the error index.
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

/// As it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stored {
    memory: Labeled<Json>,
    revision: u64,
    source: Source,
    /// Where it lies, by the embedder of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    point: Option<Point>,
    /// The last ones, oldest first, this one among them.
    history: Vec<Revision>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Point {
    embedder: String,
    at: Vec<f32>,
}

impl Memories {
    /// The memories in this namespace of a store.
    pub fn new(store: Arc<dyn Store>, namespace: Namespace) -> Self {
        Self {
            store,
            namespace,
            embedder: None,
        }
    }

    /// So that they can be searched by meaning.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// The memory under a key.
    pub async fn get(&self, key: &str) -> Result<Option<Memory>, MemoryError> {
        let stored = self.stored(key).await?;
        Ok(stored.map(|stored| stored.into_memory(key)))
    }

    /// Changes the memory under a key, or makes it. A patch sets the fields that it has and removes those that are `null` in
    /// it; what is no object takes the place of the whole. The labels of the patch come to those that the memory has.
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

    /// Brings back what a memory was. That is a change like another, with a revision of its own; the labels that came since
    /// then stay, for what was written under them may have been read.
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

    /// What a memory was, oldest first. The last hundred changes are kept.
    pub async fn history(&self, key: &str) -> Result<Vec<Revision>, MemoryError> {
        let stored = self.stored(key).await?;
        Ok(stored.map(|stored| stored.history).unwrap_or_default())
    }

    /// Forgets a memory and its past. Says whether there was one.
    pub async fn forget(&self, key: &str) -> Result<bool, MemoryError> {
        Ok(self.store.delete(&self.namespace, key).await?)
    }

    /// The memories that are nearest in meaning to a text, nearest first.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Vec<Found>, MemoryError> {
        let embedder = self.embedder.as_ref().ok_or(MemoryError::NoEmbedder)?;
        let wanted = embedder.embed(&[text.to_owned()]).await?;
        let wanted = wanted.points.into_iter().next().unwrap_or_default();
        let name = embedder.name().to_string();
        let mut found = Vec::new();
        for (key, stored) in self.all().await? {
            // Points of another embedder cannot be compared.
            let point = stored.point.as_ref().filter(|point| point.embedder == name);
            let Some(point) = point else {
                continue;
            };
            found.push(Found {
                likeness: likeness(&wanted, &point.at),
                memory: stored.into_memory(&key),
            });
        }
        found.sort_by(|one, other| {
            let nearer = other.likeness.total_cmp(&one.likeness);
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
                // Namespaces below this one have owners of their own.
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
    /// A node of a thread.
    pub fn node(cx: &NodeCx, why: impl Into<String>) -> Self {
        Self {
            thread: Some(cx.thread().to_string()),
            run: Some(cx.run().to_string()),
            why: why.into(),
            at: now(),
        }
    }

    /// A person, or a program outside of any graph.
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

/// A merge patch, as in RFC 7396.
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

/// What an embedder is given: the text itself, or the words in a structure.
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

/// How many changes of a memory are kept.
const HISTORY_MAX: usize = 100;

/// How often a change is tried when others change the same memory.
const TRIES: u32 = 32;

const PAGE: u32 = 1_000;
