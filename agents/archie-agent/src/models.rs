//! The registry of models that graphs ask for by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::{NodeCx, NodeError};
use superstep_llm::{Model, ModelError, ModelName, Provider};

use crate::profile::{ModelProfile, ModelProfiles};

/// Opens each model once and shares it. State holds only a model's name, so that it can be stored; the registry holds the
/// model.
#[derive(Debug, Default)]
pub struct ModelRegistry {
    open: Mutex<BTreeMap<String, Arc<dyn Model>>>,
    profiles: ModelProfiles,
    openai_base_url: Option<String>,
    /// Names that the context of a run may choose.
    choices: BTreeSet<String>,
}

/// Context of a run: what its caller can choose besides the input.
#[derive(Debug, Default, Deserialize)]
struct RunContext {
    #[serde(default)]
    model: Option<String>,
}

impl ModelRegistry {
    /// Creates a registry that knows what was measured of these models.
    pub fn with_profiles(profiles: ModelProfiles) -> Self {
        Self {
            profiles,
            ..Self::default()
        }
    }

    /// Sets the address of the server for `openai:` and `openai_responses:` models. `OPENAI_BASE_URL` takes precedence.
    #[must_use]
    pub fn with_openai_base_url(mut self, url: Option<String>) -> Self {
        self.openai_base_url = url;
        self
    }

    /// Sets which models the context of a run may choose. A context comes from a caller: with any other name, it could open a file
    /// or call a host. Default: none.
    #[must_use]
    pub fn with_choices(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.choices = names.into_iter().collect();
        self
    }

    /// Returns the names that the context of a run may choose.
    pub fn choices(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().map(String::as_str)
    }

    /// Returns the JSON Schema of the context that the agents read: an object whose `model` is one of the
    /// [choices](Self::with_choices).
    pub fn context_schema(&self) -> Json {
        json!({
            "type": "object",
            "properties": {
                "model": {
                    "type": "string",
                    "title": "Model",
                    "description": "Default: the model of the thread, or else of the server",
                    "enum": self.choices,
                },
            },
        })
    }

    /// Returns the name of the model for a run: the one that its context chooses, or else `own`. Fails if the context chooses a
    /// model that is not allowed.
    pub fn name_in_run<'a>(&self, own: &'a str, cx: &NodeCx) -> Result<Cow<'a, str>, NodeError> {
        let context: Option<RunContext> = cx.context()?;
        match context.and_then(|context| context.model) {
            None => Ok(Cow::Borrowed(own)),
            // A server has checked it, but the operator may allow other models since.
            Some(name) if self.choices.contains(&name) => Ok(Cow::Owned(name)),
            Some(name) => Err(NodeError::fatal(self.not_allowed(&name))),
        }
    }

    /// Returns the model for a run: the one that its context chooses, or else the one named `own`.
    pub fn get_in_run(&self, own: &str, cx: &NodeCx) -> Result<Arc<dyn Model>, NodeError> {
        let name = self.name_in_run(own, cx)?;
        self.get(&name).map_err(NodeError::fatal)
    }

    fn not_allowed(&self, name: &str) -> String {
        let allowed: Vec<_> = self.choices().map(|name| format!("`{name}`")).collect();
        let allowed = match allowed.is_empty() {
            true => "none is allowed".to_owned(),
            false => format!("allowed: {}", allowed.join(", ")),
        };
        format!(
            "the context of the run chooses the model `{name}`, which is not allowed ({allowed}); list it in `models` of the \
             settings file, or with `archie serve --allow-model`"
        )
    }

    /// Returns how much an agent may leave to the model with this name.
    pub fn profile(&self, name: &str) -> ModelProfile {
        self.profiles.get(name)
    }

    /// Registers a model under a name, replacing any model that has it.
    pub fn put(&self, name: &str, model: Arc<dyn Model>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.to_owned(), model);
    }

    /// Returns the model with this name, opening it on first use. Fails if the name is not a valid model name or the model
    /// cannot be opened.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = open.get(name) {
            return Ok(model.clone());
        }
        let parsed: ModelName = name.parse()?;
        let url = match parsed.provider() {
            Provider::OpenAi | Provider::OpenAiResponses => self.openai_base_url.as_deref(),
            _ => None,
        };
        let model = superstep_llm::open_at(&parsed, url)?;
        open.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use superstep::TestCx;

    use super::*;

    fn named(models: &ModelRegistry, context: &Json) -> Result<String, NodeError> {
        let cx = TestCx::new().context(context).cx();
        let name = models.name_in_run("script:own", &cx)?;
        Ok(name.into_owned())
    }

    #[test]
    fn the_context_of_a_run_chooses_among_the_listed_models() {
        let models = ModelRegistry::default().with_choices(["script:other".to_owned()]);
        for (context, name) in [
            (json!({}), "script:own"),
            (
                json!({ "model": null, "langgraph_auth_user": {} }),
                "script:own",
            ),
            (json!({ "model": "script:other" }), "script:other"),
        ] {
            assert_eq!(named(&models, &context).unwrap(), name);
        }
        let silent = TestCx::new().cx();
        assert_eq!(
            models.name_in_run("script:own", &silent).unwrap(),
            "script:own"
        );
    }

    #[test]
    fn a_model_that_is_not_listed_is_not_opened_whatever_file_or_host_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("replies.json");
        std::fs::write(&file, r#"{ "replies": [] }"#).unwrap();
        let name = format!("script:{}", file.display());
        let models = ModelRegistry::default().with_choices(["script:other".to_owned()]);
        let cx = TestCx::new().context(json!({ "model": name })).cx();
        let refused = models.get_in_run("script:own", &cx).unwrap_err();
        let why = refused.message();
        assert!(
            why.contains("not allowed (allowed: `script:other`)"),
            "{why}"
        );
        assert!(models.get(&name).is_ok(), "the operator may name it");
        let none = named(&ModelRegistry::default(), &json!({ "model": name })).unwrap_err();
        assert!(
            none.message().contains("none is allowed"),
            "{}",
            none.message()
        );
    }

    #[test]
    fn the_schema_of_the_context_lists_the_models() {
        let models = ModelRegistry::default().with_choices(["b:2".to_owned(), "a:1".to_owned()]);
        let schema = models.context_schema();
        assert_eq!(schema["properties"]["model"]["enum"], json!(["a:1", "b:2"]));
    }
}
