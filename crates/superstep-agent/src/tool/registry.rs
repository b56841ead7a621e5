//! Tools by name, checked as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_llm::ToolSpec;

use crate::tool::{Class, Tool};

/// The tools of an agent, by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tools(Arc<BTreeMap<String, Tool>>);

/// What is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFault {
    /// Two of one name.
    #[error("there are two tools named `{name}`; rename one, for a model calls them by name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Not a name that providers take.
    #[error("`{name}` cannot be the name of a tool; use 1 to 64 of A-Z a-z 0-9 _ -")]
    BadName {
        /// The name.
        name: String,
    },
    /// A model that is not told what a tool does calls it at random.
    #[error("the tool `{name}` has no description; say what it does and when to use it")]
    NoDescription {
        /// The tool.
        name: String,
    },
    /// Arguments are an object, at every provider.
    #[error("the arguments of the tool `{name}` are not an object; use a struct with named fields")]
    NotAnObject {
        /// The tool.
        name: String,
    },
    /// A reconcilable tool that cannot be looked up.
    #[error("the tool `{name}` is reconcilable and has nothing to look with; give it a lookup")]
    NoLookup {
        /// The tool.
        name: String,
    },
}

impl ToolFault {
    /// The stable codes of all of them.
    pub const CODES: &'static [&'static str] = &[
        "tool-duplicate",
        "tool-bad-name",
        "tool-no-description",
        "tool-not-an-object",
        "tool-no-lookup",
    ];

    /// The stable code of this fault: the name of its page in the error index.
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
    /// Checks and takes tools, or tells every fault at once.
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

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.get(name)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.0.values()
    }

    /// As a model is told of them.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// Their names, for a model that called something else.
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
