//! Assistants: graphs with a configuration, in versions.

use serde_json::Value as Json;

use crate::checkpoint::Page;
use crate::ids::{AssistantId, Timestamp};

/// An assistant in one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Assistant {
    /// Tenant of the assistant.
    pub tenant: String,
    /// Id of the assistant, the same in all versions.
    pub id: AssistantId,
    /// Name of its graph.
    pub graph: String,
    /// Name for people.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
    /// Options of its runs: a JSON object.
    pub config: Json,
    /// What the nodes of its runs can read besides the state: a JSON object.
    pub context: Json,
    /// What callers find it by: a JSON object.
    pub metadata: Json,
    /// Number of the version, from 1.
    pub version: u32,
    /// When the assistant was created, the same in all versions.
    pub created: Timestamp,
    /// When the version was made, or made the current one.
    pub updated: Timestamp,
}

/// An assistant to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAssistant {
    /// Tenant of the assistant.
    pub tenant: String,
    /// Id of the assistant.
    pub id: AssistantId,
    /// Name of its graph.
    pub graph: String,
    /// Name for people.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
    /// Options of its runs: a JSON object.
    pub config: Json,
    /// What the nodes of its runs can read besides the state: a JSON object.
    pub context: Json,
    /// What callers find it by: a JSON object.
    pub metadata: Json,
    /// When it was created.
    pub at: Timestamp,
}

impl NewAssistant {
    /// Returns the first version of the assistant.
    pub fn first_version(&self) -> Assistant {
        let new = self.clone();
        Assistant {
            tenant: new.tenant,
            id: new.id,
            graph: new.graph,
            name: new.name,
            description: new.description,
            config: new.config,
            context: new.context,
            metadata: new.metadata,
            version: 1,
            created: new.at,
            updated: new.at,
        }
    }
}

/// A change of an assistant; `None` keeps what is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssistantChange {
    /// Name of its graph.
    pub graph: Option<String>,
    /// Name for people.
    pub name: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Options of its runs, replaced as a whole.
    pub config: Option<Json>,
    /// Context of its runs, replaced as a whole.
    pub context: Option<Json>,
    /// Fields that are merged into the metadata: each replaces the one of its name.
    pub metadata: Option<Json>,
}

impl AssistantChange {
    /// Returns a version with this change, under this number.
    pub fn applied(&self, current: &Assistant, version: u32, now: Timestamp) -> Assistant {
        let pick = |change: &Option<String>, old: &String| change.as_ref().unwrap_or(old).clone();
        let json = |change: &Option<Json>, old: &Json| change.as_ref().unwrap_or(old).clone();
        Assistant {
            tenant: current.tenant.clone(),
            id: current.id,
            graph: pick(&self.graph, &current.graph),
            name: pick(&self.name, &current.name),
            description: pick(&self.description, &current.description),
            config: json(&self.config, &current.config),
            context: json(&self.context, &current.context),
            metadata: merged(&current.metadata, self.metadata.as_ref()),
            version,
            created: current.created,
            updated: now,
        }
    }
}

/// Returns metadata with the fields of a change, each of which replaces the one of its name.
pub(super) fn merged(old: &Json, change: Option<&Json>) -> Json {
    let mut all = old.clone();
    if let (Some(all), Some(Json::Object(change))) = (all.as_object_mut(), change) {
        for (name, value) in change {
            all.insert(name.clone(), value.clone());
        }
    }
    all
}

/// What [`create_assistant`](super::Registry::create_assistant) did.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedAssistant {
    /// Stored this one.
    Stored(Assistant),
    /// One with this id exists: this one. Nothing was stored.
    Exists(Assistant),
}

/// Selects assistants of a tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssistantQuery {
    /// Tenant of the assistants; empty for the unnamed one.
    pub tenant: String,
    /// Only assistants of this graph.
    pub graph: Option<String>,
    /// Only assistants whose name contains this, whatever its case.
    pub name: Option<String>,
    /// Only assistants whose metadata contains this, see [`json_contains`](super::json_contains).
    pub metadata: Option<Json>,
    /// Order of the list. Assistants that are equal by it are in the order of their ids.
    pub sort: AssistantSort,
    /// Whether the order is reversed.
    pub is_descending: bool,
    /// Which page of the list to return.
    pub page: Page,
}

impl AssistantQuery {
    /// Whether an assistant matches the query, whatever its tenant.
    pub fn matches(&self, assistant: &Assistant) -> bool {
        let has_name = |name: &String| {
            let found = assistant.name.to_lowercase();
            found.contains(&name.to_lowercase())
        };
        self.graph
            .as_ref()
            .is_none_or(|graph| *graph == assistant.graph)
            && self.name.as_ref().is_none_or(has_name)
            && self
                .metadata
                .as_ref()
                .is_none_or(|part| super::json_contains(&assistant.metadata, part))
    }

    /// Sorts assistants as the query wants them, and returns the page.
    pub fn page_of(&self, mut found: Vec<Assistant>) -> Vec<Assistant> {
        found.sort_by(|a, b| {
            let by = match self.sort {
                AssistantSort::Id => a.id.cmp(&b.id),
                AssistantSort::Graph => a.graph.cmp(&b.graph),
                AssistantSort::Name => a.name.cmp(&b.name),
                AssistantSort::Created => a.created.cmp(&b.created),
                AssistantSort::Updated => a.updated.cmp(&b.updated),
            };
            let by = if self.is_descending { by.reverse() } else { by };
            by.then(a.id.cmp(&b.id))
        });
        let skipped = found.into_iter().skip(self.page.offset as usize);
        skipped.take(self.page.limit as usize).collect()
    }
}

/// What assistants are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AssistantSort {
    /// Their ids.
    Id,
    /// The names of their graphs.
    Graph,
    /// Their names.
    Name,
    /// When they were created.
    #[default]
    Created,
    /// When they were last changed.
    Updated,
}
