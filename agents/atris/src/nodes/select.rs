//! The node that chooses a call.

use std::sync::Arc;

use superstep::{Node, NodeCx, NodeError, View};

use super::{Atris, GENERAL, Next, OPTIONS_MAX, failed, noted};
use crate::catalogue::Api;
use crate::state::{AtrisState, AtrisStateUpdate};
use crate::{SELECT_API, ranking};

/// Chooses one of the calls.
pub(crate) struct SelectApi(pub(crate) Arc<Atris>);

impl Node<AtrisState> for SelectApi {
    async fn run(&self, state: View<AtrisState>, cx: NodeCx) -> Next {
        let Some(apis) = state.apis.as_ref().filter(|apis| !apis.is_empty()) else {
            return failed(SELECT_API, &state, "there is no call to choose from");
        };
        let (name, query) = state.asked();
        let (best, degraded) = match state.query_type.as_deref() {
            Some(GENERAL) | None => self.best(&state, apis, query, &cx).await?,
            Some(_) => (
                by_rule(state.categories.as_deref().unwrap_or_default(), apis),
                None,
            ),
        };
        let Some(best) = best else {
            return failed(
                SELECT_API,
                &state,
                "none of these calls goes with the question",
            );
        };
        let mut update = AtrisStateUpdate::default().best_api(Some(best.clone()));
        if state.is_entity_query == Some(true) {
            let detail = match state.entity_type.as_deref() {
                Some("user") => "get_user",
                _ => "get_track",
            };
            let catalogue = self.0.catalogue(name).await?;
            update = update
                .secondary_api(catalogue.and_then(|catalogue| catalogue.api(detail).cloned()));
        }
        Ok(noted(update, &state, degraded).into())
    }
}

impl SelectApi {
    async fn best<'a>(
        &self,
        state: &AtrisState,
        apis: &'a [Api],
        query: &str,
        cx: &NodeCx,
    ) -> Result<(Option<&'a Api>, Option<String>), NodeError> {
        let all: Vec<&Api> = apis.iter().collect();
        let ranked = ranking::rank(query, &all);
        if let [only] = apis {
            return Ok((Some(only), None));
        }
        let by_words = ranked.first().map(|ranked| ranked.api);
        if ranking::is_clear(&ranked) {
            return Ok((by_words, None));
        }
        let offered: Vec<&Api> = match ranked.is_empty() {
            true => all,
            false => ranked.iter().map(|ranked| ranked.api).collect(),
        };
        // Offers a call that changes something only if the question asks for a change.
        let may = |api: &&&Api| api.is_read() || ranking::wants_change(query);
        let offered: Vec<&Api> = offered
            .iter()
            .filter(may)
            .take(OPTIONS_MAX)
            .copied()
            .collect();
        let options: Vec<(String, String)> = offered
            .iter()
            .map(|api| {
                (
                    api.id.clone(),
                    format!("{} {}: {}", api.method, api.api_url, api.tool_name),
                )
            })
            .collect();
        if options.is_empty() {
            return Ok((by_words, None));
        }
        let llm = state.llm.as_deref().unwrap_or_default();
        let thought = self
            .0
            .chooser
            .choose(llm, SELECT_API, query, &options, cx)
            .await?;
        let chosen = thought
            .value
            .and_then(|id| offered.iter().find(|api| api.id == id).copied());
        Ok((chosen.or(by_words), thought.degraded))
    }
}

fn by_rule<'a>(categories: &[String], apis: &'a [Api]) -> Option<&'a Api> {
    let named = categories
        .iter()
        .find_map(|name| apis.iter().find(|api| api.tool_name == *name));
    named.or_else(|| apis.first())
}
