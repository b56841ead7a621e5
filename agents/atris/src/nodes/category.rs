//! The nodes that find out what a question is about, and the calls for it.

use std::sync::Arc;

use superstep::{Node, NodeCx, NodeError, View};

use super::choice::{self, ChosenApi};
use super::{APIS_MAX, Atris, GENERAL, Next, OPTIONS_MAX, failed, noted};
use crate::catalogue::{Api, Catalogue, Dialect};
use crate::model_chooser::{MODEL_CALL, ModelInquiry};
use crate::question::Question;
use crate::ranking::{self, CallIndex};
use crate::state::{AtrisState, AtrisStateUpdate};
use crate::{EXTRACT_CATEGORY, Extraction, GET_APIS, rules};

/// Finds the API and the categories of a question.
pub(crate) struct ExtractCategory(pub(crate) Arc<Atris>);

/// Looks up the calls of these categories.
pub(crate) struct GetApis(pub(crate) Arc<Atris>);

impl Node<AtrisState> for ExtractCategory {
    async fn run(&self, state: View<AtrisState>, cx: NodeCx) -> Next {
        let asked = state.asked();
        let query = asked.text;
        if query.is_empty() {
            return failed(EXTRACT_CATEGORY, &state, "nothing was asked");
        }
        let mut update = AtrisStateUpdate::default();
        if let Some(choices) = AtrisState::choices(self.0.extraction(&state)) {
            // A process that resumes the thread reads the rest of the question in the same way.
            update = update.initial_state(Some(choices));
        }
        let catalogue = match asked.api {
            Some(name) => match self.0.catalogue(name).await? {
                Some(catalogue) => catalogue,
                None => {
                    return failed(
                        EXTRACT_CATEGORY,
                        &state,
                        format!("there is no API `{name}`; `archie api list` says which there are"),
                    );
                }
            },
            None => match choice::api(&self.0, &state, query, &cx).await? {
                ChosenApi::Only(catalogue) => catalogue,
                ChosenApi::Among(catalogue) => {
                    // The nodes that follow find the API in the question.
                    update = update.query(Some(format!("@{} {query}", catalogue.name)));
                    catalogue
                }
                ChosenApi::Nothing(why) => return failed(EXTRACT_CATEGORY, &state, why),
            },
        };
        if let Some(id) = asked.call {
            return match catalogue.api(id) {
                Some(api) => Ok(general(update, vec![api.category_name.clone()]).into()),
                None => failed(
                    EXTRACT_CATEGORY,
                    &state,
                    format!(
                        "`{}` has no call `{id}`; `archie api show {} --json` has the ids",
                        catalogue.name, catalogue.name
                    ),
                ),
            };
        }
        let known = match (catalogue.dialect, self.0.extraction(&state)) {
            (Dialect::Audius, Extraction::Rules | Extraction::Auto) => rules::known(query),
            _ => None,
        };
        if let Some(intent) = known {
            let complexity = if intent.secondary.is_some() {
                "compound"
            } else {
                "simple"
            };
            let update = update
                .query_type(Some(intent.query_type.to_owned()))
                .entity_type(Some(intent.entity_type.to_owned()))
                .is_entity_query(Some(intent.secondary.is_some()))
                .complexity(Some(complexity.to_owned()))
                .categories(Some(
                    intent.categories.into_iter().map(str::to_owned).collect(),
                ));
            let update = match intent.entity_name {
                Some(name) => update.entity_name(Some(name)),
                None => update,
            };
            return Ok(update.into());
        }
        let (categories, degraded) = self.categories(&state, &catalogue, query, &cx).await?;
        if categories.is_empty() {
            return failed(
                EXTRACT_CATEGORY,
                &state,
                format!(
                    "nothing that {} can do goes with that question",
                    catalogue.title
                ),
            );
        }
        Ok(noted(general(update, categories), &state, degraded).into())
    }
}

fn general(update: AtrisStateUpdate, categories: Vec<String>) -> AtrisStateUpdate {
    update
        .query_type(Some(GENERAL.to_owned()))
        .is_entity_query(Some(false))
        .complexity(Some("simple".to_owned()))
        .categories(Some(categories))
}

impl ExtractCategory {
    /// Returns categories by the words if they are clear, else the model's choice, else those of the calls that are close. The
    /// second value says why a model could not choose.
    async fn categories(
        &self,
        state: &AtrisState,
        catalogue: &Catalogue,
        query: &str,
        cx: &NodeCx,
    ) -> Result<(Vec<String>, Option<String>), NodeError> {
        let ranked = CallIndex::new(&catalogue.apis).rank(&Question::new(query));
        let mut by_words: Vec<&str> = Vec::new();
        for ranked in &ranked {
            if !by_words.contains(&ranked.api.category_name.as_str()) {
                by_words.push(&ranked.api.category_name);
            }
        }
        let likely = |count: usize| {
            by_words
                .iter()
                .take(count)
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let is_model_first = self.0.extraction(state) == Extraction::Model;
        let is_clear = ranking::is_clear(&ranked) && !is_model_first;
        if is_clear || catalogue.categories().len() == 1 {
            return Ok((
                if by_words.is_empty() {
                    vec![catalogue.categories()[0].to_owned()]
                } else {
                    likely(1)
                },
                None,
            ));
        }
        if !by_words.is_empty() && !is_model_first {
            // The words say enough to rank the calls of a few categories.
            return Ok((likely(CATEGORIES_MAX), None));
        }
        let shown: Vec<&str> = match by_words.is_empty() {
            true => catalogue.categories(),
            false => by_words.clone(),
        };
        let options: Vec<(String, String)> = shown
            .iter()
            .take(OPTIONS_MAX)
            .map(|name| ((*name).to_owned(), sample(catalogue, name)))
            .collect();
        let llm = self.0.llm(state, cx)?;
        let inquiry = ModelInquiry {
            llm: &llm,
            node: EXTRACT_CATEGORY,
            call: MODEL_CALL,
            question: query,
        };
        let thought = self.0.chooser.choose(inquiry, &options, cx).await?;
        Ok(match thought.value {
            // Keeps the most likely category by words too; the next list stays short enough.
            Some(choice) => {
                let beside = likely(1).into_iter().filter(|name| *name != choice);
                (
                    std::iter::once(choice.clone()).chain(beside).collect(),
                    None,
                )
            }
            None => (likely(CATEGORIES_MAX), thought.degraded),
        })
    }
}

impl Node<AtrisState> for GetApis {
    async fn run(&self, state: View<AtrisState>, _: NodeCx) -> Next {
        let Some(categories) = &state.categories else {
            return failed(GET_APIS, &state, "no category was chosen");
        };
        let asked = state.asked();
        let name = asked.api();
        let Some(catalogue) = self.0.catalogue(name).await? else {
            return failed(GET_APIS, &state, format!("the API `{name}` is gone"));
        };
        if let Some(api) = asked.call.and_then(|id| catalogue.api(id)) {
            let apis = vec![api.clone()];
            return Ok(AtrisStateUpdate::default().apis(Some(apis)).into());
        }
        let named = catalogue.named(categories);
        let mut apis: Vec<Api> = named.iter().map(|api| (*api).clone()).collect();
        if apis.len() > APIS_MAX {
            let ranked = CallIndex::new(&catalogue.apis).rank(&Question::new(asked.text));
            let is_named =
                |ranked: &ranking::Ranked<'_>| named.iter().any(|api| api.id == ranked.api.id);
            apis = ranked
                .into_iter()
                .filter(is_named)
                .take(APIS_MAX)
                .map(|ranked| ranked.api.clone())
                .collect();
        }
        if apis.is_empty() {
            return failed(
                GET_APIS,
                &state,
                "nothing of that category goes with the question",
            );
        }
        Ok(AtrisStateUpdate::default().apis(Some(apis)).into())
    }
}

/// Describes a category by the names of its first three calls.
fn sample(catalogue: &Catalogue, category: &str) -> String {
    let of_it = catalogue
        .apis
        .iter()
        .filter(|api| api.category_name == category);
    of_it
        .take(3)
        .map(|api| api.tool_name.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}

/// Number of categories whose calls are compared if no model chooses.
const CATEGORIES_MAX: usize = 6;
