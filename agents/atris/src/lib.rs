//! `atris`: ask an API in plain words.
//!
//! A funnel: the question picks a category, the category its calls, one of those is chosen, its parameters are found, and it is
//! made. A model, if there is one, sees a short list at a time and never a whole document; what is plain from the words needs
//! none. What reads is made at once; what changes something waits for a person.

pub mod answer;
mod api_client;
mod call;
pub mod catalogue;
pub mod catalogue_store;
mod choose;
pub mod connector;
mod headers;
mod nodes;
pub mod openapi;
mod params;
mod rules;
mod run_log;
pub mod state;
mod ui;
pub mod watch;
mod words;
mod write;

use std::sync::Arc;

use archie_agent::{Agent, AgentDeps};
use superstep::error::BuildError;
use superstep::{END, Graph, START};

use api_client::ApiClient;
use catalogue_store::CatalogueStore;
use choose::ModelChooser;
use connector::Connector;
use nodes::{
    Atris, ExecuteRequest, ExtractCategory, ExtractParams, GetApis, ResetState, SelectApi,
};
use state::AtrisState;

pub use api_client::record_answer;
pub use choose::NO_MODEL;

/// The name of its graph.
pub const NAME: &str = "atris";
/// The API that comes with the program.
pub const AUDIUS: &str = "audius";
/// The node that sees what a question is about.
pub const EXTRACT_CATEGORY: &str = "extract_category_node";
/// The node that looks up the calls of that.
pub const GET_APIS: &str = "get_apis_node";
/// The node that chooses one.
pub const SELECT_API: &str = "select_api_node";
/// The node that finds what it is called with, and asks for what is missing.
pub const EXTRACT_PARAMS: &str = "extract_params_node";
/// The node that makes the call.
pub const EXECUTE_REQUEST: &str = "execute_request_node";
/// The node that clears the desk for the next question.
pub const RESET_STATE: &str = "reset_state_node";

/// How the agent reaches the network, and what it prints.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The way out.
    pub connector: Connector,
    /// Answers only from what was recorded.
    pub offline: bool,
    /// Prints the update of each node.
    pub debug: bool,
}

/// What it is for, in a line.
pub const DESCRIPTION: &str = "asks an API in plain words";

/// Builds the agent.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    agent_with(deps, &Options::default())
}

/// Builds the agent, with its own way to the network.
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
    })
}

/// The whole graph.
fn create_graph(atris: Arc<Atris>) -> Result<Graph<AtrisState>, BuildError> {
    let or_reset = |next: &'static str| {
        move |state: &AtrisState| match state.error {
            Some(_) => RESET_STATE,
            None => next,
        }
    };
    Graph::builder(NAME)
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
                    // What is missing is asked for by a node that has nothing else to do: no answer pays for the model again.
                    (None, false) => EXTRACT_PARAMS,
                    (None, true) => EXECUTE_REQUEST,
                }
            },
        )
        .edge(EXECUTE_REQUEST, RESET_STATE)
        .edge(RESET_STATE, END)
        .build()
}
