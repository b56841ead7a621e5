//! `atris`: asks an API in plain words.
//!
//! The graph is a funnel: the question determines a category, the category its calls; one call is chosen, its parameters are
//! found, and it is made. A model, if there is one, sees one short list at a time and never a whole document; questions with
//! clear words need no model. A call that reads is made at once; a call that changes something waits for a person's approval.
//!
//! The agent never calls a host that a person did not allow, and never sends a secret to another origin than its own.
//!
//! In reading order: [`graph`], [`state::AtrisState`], [`catalogue`] (what can be asked of an API), [`openapi`] (reads it from a
//! document), [`connector`] (makes calls), [`watch`] (repeats a question).
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [atris](../../book/html/docs/atris.html)
//! - [Effects and tool classes](../../book/html/docs/concepts/effects-and-tool-classes.html)

pub mod answer;
mod api_client;
mod backoff;
mod call;
pub mod catalogue;
pub mod catalogue_store;
pub mod evaluation;
#[cfg(test)]
mod graph_tests;
mod headers;
pub mod health;
mod mcp_catalogue;
mod model_chooser;
mod nodes;
pub mod openapi;
mod params;
mod question;
mod ranking;
pub mod response_shape;
mod rules;
mod run_log;
pub mod state;
mod stemming;
mod step_text;
mod ui;
pub mod watch;
mod write;

use std::sync::Arc;

use archie_agent::{Agent, AgentDeps};
use superstep::error::BuildError;
use superstep::{END, Graph, START};

use api_client::ApiClient;
use catalogue_store::CatalogueStore;
use model_chooser::ModelChooser;
use nodes::{
    Atris, ExecuteRequest, ExtractCategory, ExtractParams, GetApis, ResetState, SelectApi,
};
use state::AtrisState;
use superstep_http::Connector;

pub use api_client::record_answer;
pub use model_chooser::NO_MODEL;
pub use run_log::{Transition, transitions};
/// Makes the calls.
pub use superstep_http as connector;

/// Name of the graph.
pub const NAME: &str = "atris";
/// Name of the built-in API.
pub const AUDIUS: &str = "audius";
/// Node that finds out what a question is about.
pub const EXTRACT_CATEGORY: &str = "extract_category_node";
/// Node that looks up the calls of the chosen categories.
pub const GET_APIS: &str = "get_apis_node";
/// Node that chooses one of the calls.
pub const SELECT_API: &str = "select_api_node";
/// Node that finds the parameters of the call, and interrupts to ask a person for missing ones.
pub const EXTRACT_PARAMS: &str = "extract_params_node";
/// Node that makes the call.
pub const EXECUTE_REQUEST: &str = "execute_request_node";
/// Node that clears the state for the next question.
pub const RESET_STATE: &str = "reset_state_node";

/// How the agent reaches the network, and what it prints.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Connector for all calls. Default: the network of this machine.
    pub connector: Connector,
    /// Whether to answer only from recorded answers. Default: false.
    pub offline: bool,
    /// Whether to print the update of each node. Default: false.
    pub debug: bool,
    /// Who reads category, call and parameters out of a question. Default: [`Extraction::Auto`].
    pub extraction: Extraction,
}

/// Who reads category, call and parameters out of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extraction {
    /// The rules alone. No model is called.
    Rules,
    /// The model, for every question. The rules check it: a call must be one of the candidates, and a value must be in the
    /// question, an allowed value or the default.
    Model,
    /// The rules, and the model where they are in doubt.
    #[default]
    Auto,
}

/// One-line description, shown in lists of agents.
pub const DESCRIPTION: &str = "asks an API in plain words";

/// Builds the agent with default options.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    agent_with(deps, &Options::default())
}

/// Builds the agent with these options.
pub fn agent_with(deps: &AgentDeps, options: &Options) -> anyhow::Result<Arc<Agent>> {
    let debug = options.debug;
    let agent = Agent::new(graph(deps, options)?, DESCRIPTION, ui::AtrisUi { debug });
    Ok(Arc::new(agent))
}

/// Builds the graph.
pub fn graph(deps: &AgentDeps, options: &Options) -> anyhow::Result<Graph<AtrisState>> {
    Ok(create_graph(atris(deps, options))?)
}

fn atris(deps: &AgentDeps, options: &Options) -> Arc<Atris> {
    Arc::new(Atris {
        catalogue_store: CatalogueStore::new(deps.store.clone()),
        chooser: ModelChooser {
            models: deps.models.clone(),
            spending: deps.spending.clone(),
        },
        api_client: ApiClient {
            connector: options.connector.clone(),
            store: deps.store.clone(),
            offline: options.offline,
        },
        mcp: deps.mcp.clone(),
        extraction: options.extraction,
        default_model: deps.model.clone(),
    })
}

/// Connects the nodes.
fn create_graph(atris: Arc<Atris>) -> Result<Graph<AtrisState>, BuildError> {
    let or_reset = |next: &'static str| {
        move |state: &AtrisState| match state.error {
            Some(_) => RESET_STATE,
            None => next,
        }
    };
    Graph::builder(NAME)
        .inputs(["query"])
        .context_schema(atris.chooser.models.context_schema())
        .node(EXTRACT_CATEGORY, ExtractCategory(atris.clone()))
        .node(GET_APIS, GetApis(atris.clone()))
        .node(SELECT_API, SelectApi(atris.clone()))
        .node(EXTRACT_PARAMS, ExtractParams(atris.clone()))
        .node(EXECUTE_REQUEST, ExecuteRequest(atris))
        .node(RESET_STATE, ResetState)
        .route(
            START,
            &[EXTRACT_CATEGORY, END],
            |state: &AtrisState| match &state.query {
                Some(_) => EXTRACT_CATEGORY,
                None => END,
            },
        )
        .route(
            EXTRACT_CATEGORY,
            &[GET_APIS, RESET_STATE],
            or_reset(GET_APIS),
        )
        .route(GET_APIS, &[SELECT_API, RESET_STATE], or_reset(SELECT_API))
        .route(
            SELECT_API,
            &[EXTRACT_PARAMS, RESET_STATE],
            or_reset(EXTRACT_PARAMS),
        )
        .route(
            EXTRACT_PARAMS,
            &[EXTRACT_PARAMS, EXECUTE_REQUEST, RESET_STATE],
            |state: &AtrisState| {
                match (&state.error, state.missing().is_empty()) {
                    (Some(_), _) => RESET_STATE,
                    // The node loops to ask for missing values, so that a person's answer does not repeat the model call.
                    (None, false) => EXTRACT_PARAMS,
                    (None, true) => EXECUTE_REQUEST,
                }
            },
        )
        .edge(EXECUTE_REQUEST, RESET_STATE)
        .edge(RESET_STATE, END)
        .build()
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
