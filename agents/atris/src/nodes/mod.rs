//! The six nodes, and what they share.

mod category;
pub(super) mod choice;
mod execute;
mod params;
mod select;

use std::borrow::Cow;
use std::sync::Arc;

use archie_agent::mcp::McpServers;
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::Decision;

use super::Extraction;
use super::answer;
use super::api_client::ApiClient;
use super::catalogue::Catalogue;
use super::catalogue_store::CatalogueStore;
use super::mcp_catalogue;
use super::model_chooser::{ModelChooser, NO_MODEL};
use super::state::{AtrisState, AtrisStateUpdate, ChatLine, ErrorEntry, OFTEN};

pub(super) use category::{ExtractCategory, GetApis};
pub(super) use execute::ExecuteRequest;
pub(super) use params::ExtractParams;
pub(super) use select::SelectApi;

/// Dependencies of the nodes.
pub(super) struct Atris {
    pub(super) catalogue_store: CatalogueStore,
    pub(super) chooser: ModelChooser,
    pub(super) api_client: ApiClient,
    pub(super) mcp: Arc<McpServers>,
    pub(super) extraction: Extraction,
    /// Model for threads whose state names none.
    pub(super) default_model: Option<String>,
}

/// Clears the state for the next question.
pub(super) struct ResetState;

type Next = Result<Command<AtrisState>, NodeError>;

impl Node<AtrisState> for ResetState {
    async fn run(&self, _: View<AtrisState>, _: NodeCx) -> Next {
        Ok(AtrisState::reset().into())
    }
}

impl Atris {
    /// Returns the API with this name, or else the MCP server.
    async fn catalogue(&self, name: &str) -> Result<Option<Catalogue>, NodeError> {
        let found = self.catalogue_store.find(name).await;
        let found =
            found.map_err(|error| NodeError::retryable(Unreadable(format!("{error:#}"))))?;
        match found {
            None if !self.api_client.offline => mcp_catalogue::find(&self.mcp, name).await,
            found => Ok(found),
        }
    }

    /// Returns all APIs, sorted by name, and the MCP servers that can be used.
    async fn catalogues(&self) -> Result<Vec<Catalogue>, NodeError> {
        let all = self.catalogue_store.list().await;
        let mut all =
            all.map_err(|error| NodeError::retryable(Unreadable(format!("{error:#}"))))?;
        if !self.api_client.offline {
            let servers = mcp_catalogue::all(&self.mcp).await;
            let is_new = |server: &Catalogue| all.iter().all(|api| api.name != server.name);
            let servers: Vec<_> = servers.into_iter().filter(is_new).collect();
            all.extend(servers);
        }
        Ok(all)
    }

    /// Returns who reads the question: what the thread stores, else what this process was started with.
    fn extraction(&self, state: &AtrisState) -> Extraction {
        state.extraction().unwrap_or(self.extraction)
    }

    /// Returns the name of the model to ask: none if the rules decide alone.
    fn llm<'a>(&'a self, state: &'a AtrisState, cx: &NodeCx) -> Result<Cow<'a, str>, NodeError> {
        match self.extraction(state) {
            Extraction::Rules => Ok(Cow::Borrowed(NO_MODEL)),
            Extraction::Model | Extraction::Auto => {
                let own = state.llm.as_deref().or(self.default_model.as_deref());
                self.chooser.models.name_in_run(own.unwrap_or_default(), cx)
            }
        }
    }
}

fn asked(state: &AtrisState) -> ChatLine {
    ChatLine::new("user", state.query.clone().unwrap_or_default())
}

fn noted(update: AtrisStateUpdate, state: &AtrisState, note: Option<String>) -> AtrisStateUpdate {
    let Some(note) = note else { return update };
    let mut messages = state.messages.clone().unwrap_or_default();
    messages.push(ChatLine::new("system", note));
    update.messages(Some(messages))
}

/// Ends the question with an error: a polite answer for the person, and an entry in the error history.
fn failed(node: &str, state: &AtrisState, why: impl Into<String>) -> Next {
    failed_at(node, state, why, None)
}

/// Says that a person did not agree to a call. The words of the tool are for a model.
fn withheld(node: &str, state: &AtrisState, decision: Decision) -> Next {
    let (error, answer) = match decision {
        Decision::Expired => (
            "not called: no answer in time",
            "Nothing was called or changed: there was no answer in time.",
        ),
        _ => (
            "not called: a person said no",
            "Nothing was called or changed: you said no.",
        ),
    };
    let entry = ErrorEntry {
        node: node.to_owned(),
        error: error.to_owned(),
    };
    let update = AtrisStateUpdate::default()
        .error(Some(error.to_owned()))
        .error_history(entry)
        .message_history(asked(state))
        .message_history(ChatLine::new("assistant", answer));
    Ok(update.into())
}

fn failed_at(node: &str, state: &AtrisState, why: impl Into<String>, host: Option<String>) -> Next {
    let entry = ErrorEntry {
        node: node.to_owned(),
        // The message may contain untrusted text.
        error: answer::shown(&why.into()),
    };
    let often = state
        .error_history
        .iter()
        .filter(|other| **other == entry)
        .count()
        + 1;
    let mut polite = format!("That did not work: {}.", entry.error.trim_end_matches('.'));
    if often > OFTEN {
        polite =
            format!("{polite}\nWarning: the same error has come {often} times on this thread.");
    }
    let update = AtrisStateUpdate::default()
        .error(Some(entry.error.clone()))
        .error_history(entry)
        .message_history(asked(state))
        .message_history(ChatLine::new("assistant", polite));
    Ok(match host {
        Some(host) => update.selected_host(Some(host)),
        None => update,
    }
    .into())
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreadable(String);

/// Kind of a question that no rule matches.
const GENERAL: &str = "general";
/// Maximum number of options shown to a model.
const OPTIONS_MAX: usize = 12;
/// Maximum number of calls to choose from.
const APIS_MAX: usize = 20;
