//! The models that graphs ask for by name, opened once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use superstep_llm::{Model, ModelError, ModelName};

/// State holds a model's name; this holds the model.
#[derive(Debug, Default)]
pub struct ModelRegistry {
    open: Mutex<BTreeMap<String, Arc<dyn Model>>>,
}

impl ModelRegistry {
    /// Answers under this name with this model.
    pub fn put(&self, name: &str, model: Arc<dyn Model>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.to_owned(), model);
    }

    /// The model of this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = open.get(name) {
            return Ok(model.clone());
        }
        let parsed: ModelName =
            name.parse()
                .map_err(|error: superstep_llm::NotAModel| ModelError::BadFile {
                    model: ModelName::new(superstep_llm::Provider::Script, name),
                    why: error.to_string(),
                })?;
        let model = superstep_llm::open(&parsed)?;
        open.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}
