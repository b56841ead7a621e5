//! The models of an agent: the one that it was built with, and those that a run can choose instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_core::{NodeCx, NodeError};
use superstep_llm::Model;

/// The models that an agent can call.
#[derive(Debug, Clone)]
pub(super) struct Models {
    default: Arc<dyn Model>,
    choices: BTreeMap<String, Arc<dyn Model>>,
}

impl Models {
    pub(super) fn new(default: Arc<dyn Model>) -> Self {
        Self {
            default,
            choices: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, name: String, model: Arc<dyn Model>) {
        self.choices.insert(name, model);
    }

    /// Returns the model that the context of the run names, or the default one. Fails if there is no model of that name.
    pub(super) fn chosen(&self, cx: &NodeCx) -> Result<&dyn Model, NodeError> {
        // A context belongs to the caller: without choices, a `model` in it may mean anything.
        if self.choices.is_empty() {
            return Ok(&*self.default);
        }
        let context: Option<Json> = cx.context()?;
        let Some(name) = context.as_ref().and_then(|context| context.get(FIELD)) else {
            return Ok(&*self.default);
        };
        let chosen = match name {
            Json::Null => Some(&self.default),
            Json::String(name) => self.choices.get(name),
            _ => None,
        };
        match chosen {
            Some(model) => Ok(&**model),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &Json) -> NodeError {
        let names: Vec<_> = self
            .choices
            .keys()
            .map(|name| format!("`{name}`"))
            .collect();
        let name = match name {
            Json::String(name) => name.clone(),
            other => other.to_string(),
        };
        NodeError::fatal(format!(
            "the run's context chooses the model `{name}`, which this agent does not have; it has {}",
            names.join(", ")
        ))
    }
}

/// Field of a run's context that names the model.
const FIELD: &str = "model";
