//! The node that chooses a call.

use std::sync::Arc;

use superstep::{Node, NodeCx, NodeError, View};

use super::{Atris, GENERAL, Next, OPTIONS_MAX, choice, failed, noted};
use crate::catalogue::{Api, Catalogue};
use crate::model_chooser::{Choice, MODEL_CALL, ModelInquiry};
use crate::question::Question;
use crate::ranking::{self, CallIndex, Ranked};
use crate::state::{AtrisState, AtrisStateUpdate};
use crate::{Extraction, SELECT_API};

/// Chooses one of the calls.
pub(crate) struct SelectApi(pub(crate) Arc<Atris>);

impl Node<AtrisState> for SelectApi {
    async fn run(&self, state: View<AtrisState>, cx: NodeCx) -> Next {
        let Some(apis) = state.apis.as_ref().filter(|apis| !apis.is_empty()) else {
            return failed(SELECT_API, &state, "there is no call to choose from");
        };
        let asked = state.asked();
        let catalogue = self.0.catalogue(asked.api()).await?;
        let selected = match (asked.call, state.query_type.as_deref()) {
            (Some(id), _) => SelectedCall::unasked(apis.iter().find(|api| api.id == id)),
            (None, Some(GENERAL) | None) => {
                self.best(&state, apis, catalogue.as_ref(), &cx).await?
            }
            (None, Some(_)) => {
                let categories = state.categories.as_deref().unwrap_or_default();
                SelectedCall::unasked(by_rule(categories, apis))
            }
        };
        let Some(best) = selected.api else {
            return failed(
                SELECT_API,
                &state,
                "none of these calls goes with the question",
            );
        };
        let mut update = AtrisStateUpdate::default().best_api(Some(best.clone()));
        if selected.is_by_person {
            // The question keeps the choice, so that a watch does not ask for it again.
            let query = format!("@{}/{} {}", asked.api(), best.id, asked.text);
            update = update.query(Some(query));
        }
        if state.is_entity_query == Some(true) {
            let detail = match state.entity_type.as_deref() {
                Some("user") => "get_user",
                _ => "get_track",
            };
            update = update
                .secondary_api(catalogue.and_then(|catalogue| catalogue.api(detail).cloned()));
        }
        Ok(noted(update, &state, selected.degraded).into())
    }
}

/// A call, and how it was chosen.
struct SelectedCall<'a> {
    api: Option<&'a Api>,
    /// Why a model could not choose.
    degraded: Option<String>,
    is_by_person: bool,
}

impl<'a> SelectedCall<'a> {
    /// Creates a choice that the person was not asked for.
    fn unasked(api: Option<&'a Api>) -> Self {
        Self {
            api,
            degraded: None,
            is_by_person: false,
        }
    }
}

impl SelectApi {
    /// Chooses by the words. If several calls are close, a model may choose if all of them only read, else the person chooses. A
    /// model also chooses where the words say nothing, or first of all with [`Extraction::Model`].
    async fn best<'a>(
        &self,
        state: &AtrisState,
        apis: &'a [Api],
        catalogue: Option<&Catalogue>,
        cx: &NodeCx,
    ) -> Result<SelectedCall<'a>, NodeError> {
        let asked = state.asked();
        if let [only] = apis {
            return Ok(SelectedCall::unasked(Some(only)));
        }
        let question = Question::new(asked.text);
        // How rare a word is depends on the whole catalogue, not on the few calls to choose from.
        let all = catalogue.map_or(apis, |catalogue| &catalogue.apis);
        let mut ranked = CallIndex::new(all).rank(&question);
        ranked.retain(|ranked| apis.iter().any(|api| api.id == ranked.api.id));
        let of = |id: &str| apis.iter().find(|api| api.id == id);
        let by_words = ranked.first().and_then(|ranked| of(&ranked.api.id));
        let is_model_first = self.0.extraction(state) == Extraction::Model;
        if ranking::is_clear(&ranked) && !is_model_first {
            return Ok(SelectedCall::unasked(by_words));
        }
        let close = ranking::close(&ranked);
        let mut degraded = None;
        if is_model_first || ranked.is_empty() {
            let options = options(&question, &ranked, apis);
            let thought = self.chosen(state, &options, MODEL_CALL, cx).await?;
            // The chooser takes only an entry of the list, so a call that the rules would not offer cannot be chosen.
            if let Some(chosen) = thought.value.and_then(|id| of(&id)) {
                return Ok(SelectedCall::unasked(Some(chosen)));
            }
            degraded = thought.degraded;
        } else if close.len() > 1 && close.iter().all(|one| one.api.is_read()) {
            // A small model tends to take the first or the last of a list. It saves the person a question only if it chooses
            // the same call in both orders. Whether something changes is always the person's choice.
            let mut options = options(&question, close, apis);
            let first = self.chosen(state, &options, MODEL_CALL, cx).await?;
            degraded = first.degraded;
            if let Some(chosen) = first.value.and_then(|id| of(&id)) {
                options.reverse();
                let second = self.chosen(state, &options, MODEL_AGAIN, cx).await?;
                if second.value.as_ref() == Some(&chosen.id) {
                    return Ok(SelectedCall::unasked(Some(chosen)));
                }
                degraded = second.degraded;
            }
        }
        if close.len() > 1 {
            let id = choice::ask_call(&question, close, apis, cx).await?;
            return Ok(SelectedCall {
                api: of(&id),
                degraded,
                is_by_person: true,
            });
        }
        Ok(SelectedCall {
            degraded,
            ..SelectedCall::unasked(by_words)
        })
    }

    /// Lets the model choose one of the options; none if there are none.
    async fn chosen(
        &self,
        state: &AtrisState,
        options: &[(String, String)],
        call: &'static str,
        cx: &NodeCx,
    ) -> Result<Choice<String>, NodeError> {
        if options.is_empty() {
            return Ok(Choice::default());
        }
        let llm = self.0.llm(state, cx)?;
        let inquiry = ModelInquiry {
            llm: &llm,
            node: SELECT_API,
            call,
            question: state.asked().text,
        };
        self.0.chooser.choose(inquiry, options, cx).await
    }
}

/// Returns the calls that a model may choose from. A call that changes something only if the question asks for a change, or if
/// its words are the best.
fn options(question: &Question, ranked: &[Ranked<'_>], apis: &[Api]) -> Vec<(String, String)> {
    let offered: Vec<&Api> = match ranked.is_empty() {
        true => apis.iter().collect(),
        false => ranked.iter().map(|ranked| ranked.api).collect(),
    };
    let best = ranked.first().map(|ranked| &ranked.api.id);
    let may = |api: &&Api| api.is_read() || question.wants_change() || Some(&api.id) == best;
    offered
        .into_iter()
        .filter(may)
        .take(OPTIONS_MAX)
        .map(|api| {
            let what = format!("{} {}: {}", api.method, api.api_url, api.tool_name);
            (api.id.clone(), what)
        })
        .collect()
}

fn by_rule<'a>(categories: &[String], apis: &'a [Api]) -> Option<&'a Api> {
    let named = categories
        .iter()
        .find_map(|name| apis.iter().find(|api| api.tool_name == *name));
    named.or_else(|| apis.first())
}

/// Key of the second of two model calls of this node.
const MODEL_AGAIN: &str = "again";
