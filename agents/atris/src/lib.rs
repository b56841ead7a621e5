//! `atris`: ask an API in plain words.
//!
//! A funnel: the question picks a category, the category its calls, one of those is chosen, its parameters are found, and it is
//! made. A model, if there is one, sees a short list at a time and never a whole document; what is plain from the words needs
//! none. What reads is made at once; what changes something waits for a person.

mod answer;
pub mod api_command;
mod call;
pub mod catalogue;
mod choose;
pub mod command;
mod headers;
mod log;
mod nodes;
pub mod openapi;
mod outside;
mod params;
mod rules;
pub mod shelf;
pub mod state;
mod told;
pub mod watch;
mod words;
mod write;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::{END, Graph, START};

use crate::agents::{AnyAgent, Registered, Workshop};
use crate::connector::Connector;
use choose::Thinker;
use nodes::{
    Atris, ExecuteRequest, ExtractCategory, ExtractParams, GetApis, ResetState, SelectApi,
};
use outside::Outside;
use shelf::Shelf;
use state::AtrisState;

pub use choose::NO_MODEL;
pub(crate) use outside::record_answer;

/// Its name on the wire.
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

/// How an agent reaches the world and shows itself.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The way out.
    pub connector: Connector,
    /// Answers only from what was recorded.
    pub offline: bool,
    /// Shows what each node wrote.
    pub debug: bool,
}

/// The agent.
pub fn agent(workshop: &Workshop) -> anyhow::Result<Arc<dyn AnyAgent>> {
    agent_with(workshop, Options::default())
}

/// The agent, reaching the world in its own way.
pub fn agent_with(workshop: &Workshop, options: Options) -> anyhow::Result<Arc<dyn AnyAgent>> {
    let manner = command::Asking {
        debug: options.debug,
    };
    let graph = create_graph(atris(workshop, &options))?;
    Ok(Arc::new(Registered::new(
        graph,
        "asks an API in plain words",
        manner,
    )))
}

fn atris(workshop: &Workshop, options: &Options) -> Arc<Atris> {
    Arc::new(Atris {
        shelf: Shelf::new(workshop.store.clone()),
        thinker: Thinker {
            models: workshop.models.clone(),
            spending: workshop.spending.clone(),
        },
        outside: Outside {
            connector: options.connector.clone(),
            store: workshop.store.clone(),
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
