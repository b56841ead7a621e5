//! `email_assistant`: sorts mail, drafts answers, and never surprises.
//!
//! Two graphs: the outer one sorts, the inner one answers. What the model wants done is committed before anybody is asked,
//! everybody is asked before anything is done, and each thing is done once, by its id. Who gets a mail is not decided by a model.

pub mod calendar;
pub mod command;
pub mod email;
pub mod google;
pub mod html;
mod ingest;
mod interrupt_handler;
mod learn;
mod login;
pub mod mailbox;
pub mod memory;
pub mod mime;
pub mod policy;
pub mod prompts;
mod respond;
mod round;
pub mod state;
mod time_machine;
pub mod tools;
pub mod triage;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::store::Store;
use superstep::{END, Graph, NodeError, START};
use superstep_agent::Spending;
use superstep_llm::Model;

use crate::agents::{AnyAgent, Registered, Workshop};
use crate::models::Models;
use crate::prompts::Texts;
use interrupt_handler::InterruptHandler;
use mailbox::Mailboxes;
use prompts::Prompts;
use respond::{LlmCall, MarkAsReadNode, after_llm_call};
use state::MailState;
use triage::{TriageInterruptHandler, TriageRouter};

pub use email::{format_gmail_markdown, parse_gmail};
pub use ingest::{Came, Ingest};
pub use learn::UserPreferences;
pub use memory::{get_memory, update_memory};
pub use time_machine::{Again, time_machine};
pub use triage::RouterSchema;

/// Its name on the wire.
pub const NAME: &str = "email_assistant";
/// The node that sorts.
pub const TRIAGE_ROUTER: &str = "triage_router";
/// The node that shows.
pub const TRIAGE_INTERRUPT_HANDLER: &str = "triage_interrupt_handler";
/// The graph that answers.
pub const RESPONSE_AGENT: &str = "response_agent";
/// The node that asks the model.
pub const LLM_CALL: &str = "llm_call";
/// The node that asks the person, and acts.
pub const INTERRUPT_HANDLER: &str = "interrupt_handler";
/// The node that marks.
pub const MARK_AS_READ: &str = "mark_as_read_node";

/// What the nodes share.
#[derive(Debug)]
struct Parts {
    models: Arc<Models>,
    mailboxes: Arc<Mailboxes>,
    store: Memory,
    prompts: Prompts,
    spending: Option<Spending>,
    /// For threads that name none.
    model: Option<String>,
}

impl Parts {
    fn model(&self, state: &MailState) -> Result<Arc<dyn Model>, NodeError> {
        let own = Some(&state.model_name).filter(|name| !name.is_empty());
        let name = own.or(self.model.as_ref());
        let name = name.ok_or_else(|| {
            NodeError::fatal("no model is chosen; give one with --model, or set ARCHIE_MODEL")
        })?;
        self.models.get(name).map_err(NodeError::fatal)
    }
}

/// The agent, with the mailboxes of the program's home.
pub fn agent(workshop: &Workshop) -> anyhow::Result<Arc<dyn AnyAgent>> {
    let mailboxes = Arc::new(Mailboxes::new(&workshop.settings.home));
    agent_with(workshop, mailboxes)
}

/// The agent, with mailboxes that are open already.
pub fn agent_with(
    workshop: &Workshop,
    mailboxes: Arc<Mailboxes>,
) -> anyhow::Result<Arc<dyn AnyAgent>> {
    let prompts = Prompts::of(NAME, &workshop.settings)?;
    let parts = Parts {
        models: workshop.models.clone(),
        mailboxes,
        store: Memory(workshop.store.clone()),
        prompts,
        spending: workshop.spending.clone(),
        model: workshop.settings.model.clone(),
    };
    let about = "sorts your mail, drafts answers, and sends nothing that you have not seen";
    let graph = graph(&Arc::new(parts))?;
    Ok(Arc::new(Registered::new(graph, about, command::Desk)))
}

/// The whole graph.
fn graph(parts: &Arc<Parts>) -> Result<Graph<MailState>, BuildError> {
    let response_agent = Graph::builder(RESPONSE_AGENT)
        .node(LLM_CALL, LlmCall(parts.clone()))
        .node(INTERRUPT_HANDLER, InterruptHandler(parts.clone()))
        .node(MARK_AS_READ, MarkAsReadNode(parts.clone()))
        .edge(START, LLM_CALL)
        .route(LLM_CALL, &[INTERRUPT_HANDLER, MARK_AS_READ], after_llm_call)
        .commands(INTERRUPT_HANDLER, &[LLM_CALL, END])
        .edge(MARK_AS_READ, END)
        .build()?;
    Graph::builder(NAME)
        .node(TRIAGE_ROUTER, TriageRouter(parts.clone()))
        .node(
            TRIAGE_INTERRUPT_HANDLER,
            TriageInterruptHandler(parts.clone()),
        )
        .shared_subgraph(RESPONSE_AGENT, response_agent)
        .node(MARK_AS_READ, MarkAsReadNode(parts.clone()))
        .edge(START, TRIAGE_ROUTER)
        .commands(
            TRIAGE_ROUTER,
            &[RESPONSE_AGENT, TRIAGE_INTERRUPT_HANDLER, END],
        )
        .commands(TRIAGE_INTERRUPT_HANDLER, &[RESPONSE_AGENT, END])
        .edge(RESPONSE_AGENT, MARK_AS_READ)
        .edge(MARK_AS_READ, END)
        .build()
}

/// The long-term store, for those who print what they hold.
#[derive(Clone)]
struct Memory(Arc<dyn Store>);

impl std::ops::Deref for Memory {
    type Target = Arc<dyn Store>;

    fn deref(&self) -> &Arc<dyn Store> {
        &self.0
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}
