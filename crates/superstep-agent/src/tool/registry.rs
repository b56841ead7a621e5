//! A validated set of tools, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_llm::ToolSpec;

use crate::tool::{Class, Tool};

/// The tools of an agent, by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tools(Arc<BTreeMap<String, Tool>>);

/// A problem with a tool, found when the set is built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFault {
    /// Two tools have the same name.
    #[error("there are two tools named `{name}`; rename one, for a model calls them by name")]
    Duplicate {
        /// The shared name.
        name: String,
    },
    /// Providers do not accept the name.
    #[error("`{name}` cannot be the name of a tool; use 1 to 64 of A-Z a-z 0-9 _ -")]
    BadName {
        /// The invalid name.
        name: String,
    },
    /// The description is empty. Without one a model calls the tool at random.
    #[error("the tool `{name}` has no description; say what it does and when to use it")]
    NoDescription {
        /// Name of the tool.
        name: String,
    },
    /// The schema of the arguments is not an object, which every provider requires.
    #[error("the arguments of the tool `{name}` are not an object; use a struct with named fields")]
    NotAnObject {
        /// Name of the tool.
        name: String,
    },
    /// The tool is reconcilable but has no lookup.
    #[error("the tool `{name}` is reconcilable and has nothing to look with; give it a lookup")]
    NoLookup {
        /// Name of the tool.
        name: String,
    },
}

impl ToolFault {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] = &[
        "tool-duplicate",
        "tool-bad-name",
        "tool-no-description",
        "tool-not-an-object",
        "tool-no-lookup",
    ];

    /// Returns the stable code of this problem: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "tool-duplicate",
            Self::BadName { .. } => "tool-bad-name",
            Self::NoDescription { .. } => "tool-no-description",
            Self::NotAnObject { .. } => "tool-not-an-object",
            Self::NoLookup { .. } => "tool-no-lookup",
        }
    }
}

impl Tools {
    /// Validates tools, and returns either the set or every problem.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self, Vec<ToolFault>> {
        let mut known = BTreeMap::new();
        let mut faults = Vec::new();
        for tool in tools {
            faults.extend(faults_of(&tool));
            let name = tool.name().to_owned();
            if known.insert(name.clone(), tool).is_some() {
                faults.push(ToolFault::Duplicate { name });
            }
        }
        match faults.is_empty() {
            true => Ok(Self(Arc::new(known))),
            false => Err(faults),
        }
    }

    /// Returns the tool with this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.get(name)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the tools in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.0.values()
    }

    /// Returns the specs to send to a model, in order of the names.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// Lists the names, for a model that requested an unknown tool.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.0.keys().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }
}

fn faults_of(tool: &Tool) -> Vec<ToolFault> {
    let name = tool.name().to_owned();
    let mut faults = Vec::new();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
        faults.push(ToolFault::BadName { name: name.clone() });
    }
    if tool.spec.description.trim().is_empty() {
        faults.push(ToolFault::NoDescription { name: name.clone() });
    }
    if tool.spec.schema.get("type") != Some(&Json::from("object")) {
        faults.push(ToolFault::NotAnObject { name: name.clone() });
    }
    if tool.class == Class::Reconcilable && tool.lookup.is_none() {
        faults.push(ToolFault::NoLookup { name });
    }
    faults
}
