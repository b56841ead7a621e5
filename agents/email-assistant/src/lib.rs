//! `email_assistant`: classifies email, drafts replies, and asks a person before it sends anything.
//!
//! Two graphs: the outer one classifies an email, the inner one answers it. The superstep that calls the model commits the tool
//! calls before a person sees them, and the person answers every question of a message before any of its calls run. Each call
//! runs under an idempotency key made of its id, so a resumed thread can look up an effect instead of repeating it. Code
//! computes the recipients from the email and the approved arguments (see [`policy`]).
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [mail](../../book/html/docs/mail.html)
//! - [Approve in a browser](../../book/html/docs/howto/approve-in-a-browser.html)

pub mod calendar;
pub mod decisions;
mod domains;
pub mod email;
pub mod evaluation;
pub mod google;
pub mod html;
mod interrupt_handler;
mod learn;
mod mail_view;
pub mod mailbox;
pub mod memory;
pub mod mime;
pub mod policy;
pub mod preference;
pub mod prompts;
pub mod proposals;
mod respond;
pub mod rules;
mod sorting;
pub mod state;
mod step_text;
pub mod suspicion;
mod tool_round;
pub mod tools;
mod triage;
mod ui;

use std::sync::Arc;

use archie_agent::prompts::PromptFiles;
use archie_agent::{Agent, AgentDeps, ModelRegistry};
use superstep::error::BuildError;
use superstep::store::{Store, TenantStore};
use superstep::{END, Graph, NodeCx, NodeError, START};
use superstep_agent::Spending;
use superstep_llm::Model;

use interrupt_handler::InterruptHandler;
use mailbox::Mailboxes;
use prompts::Prompts;
use respond::{LlmCall, MarkAsReadNode, after_llm_call};
use state::MailState;
use triage::{TriageInterruptHandler, TriageRouter};

pub use email::{format_gmail_markdown, parse_gmail};
pub use learn::{LessonContext, MemoryUpdate, UserPreferences, update_memory};
pub use memory::{apply_change, get_memory};
pub use sorting::{RouterSchema, SortedMail, classify, is_quotation};

/// Name of the outer graph, and the folder name of its prompts.
pub const NAME: &str = "email_assistant";
/// Node of the outer graph that classifies the email and routes it.
pub const TRIAGE_ROUTER: &str = "triage_router";
/// Node of the outer graph that shows a `notify` email to a person and waits for the answer.
pub const TRIAGE_INTERRUPT_HANDLER: &str = "triage_interrupt_handler";
/// Name of the inner graph, and of the outer graph's subgraph node, that writes the reply.
pub const RESPONSE_AGENT: &str = "response_agent";
/// Node of the inner graph that asks the model for its next tool calls.
pub const LLM_CALL: &str = "llm_call";
/// Node of the inner graph that asks the person about tool calls and then runs them.
pub const INTERRUPT_HANDLER: &str = "interrupt_handler";
/// Node, in both graphs, that marks the email as read in its mailbox.
pub const MARK_AS_READ: &str = "mark_as_read_node";

/// Dependencies that all nodes share.
#[derive(Debug)]
struct MailDeps {
    models: Arc<ModelRegistry>,
    mailboxes: Arc<Mailboxes>,
    store: Memory,
    prompts: Prompts,
    spending: Option<Spending>,
    /// Model for threads whose state has an empty `model_name`.
    model: Option<String>,
}

impl MailDeps {
    /// Returns the store of the thread's tenant: preferences, rules and decisions belong to whose mail it is.
    fn store(&self, cx: &NodeCx) -> Arc<dyn Store> {
        Arc::new(TenantStore::new(self.store.0.clone(), cx.thread()))
    }

    fn model(&self, state: &MailState, cx: &NodeCx) -> Result<Arc<dyn Model>, NodeError> {
        let own = match state.model_name.as_str() {
            "" => self.model.as_deref().unwrap_or_default(),
            name => name,
        };
        let name = self.models.name_in_run(own, cx)?;
        if name.is_empty() {
            return Err(NodeError::fatal(
                "no model is chosen; give one with --model, or set ARCHIE_MODEL",
            ));
        }
        self.models.get(&name).map_err(NodeError::fatal)
    }
}

/// One-line description of the agent for lists and help.
pub const DESCRIPTION: &str =
    "sorts your mail, drafts answers, and sends nothing that you have not seen";

/// Builds the agent with mailboxes whose credentials and local outbox are in `deps.data_folder`.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    agent_with(deps, Arc::new(Mailboxes::new(&deps.data_folder)))
}

/// Builds the agent with mailboxes that the caller provides.
pub fn agent_with(deps: &AgentDeps, mailboxes: Arc<Mailboxes>) -> anyhow::Result<Arc<Agent>> {
    let agent = Agent::new(graph(deps, mailboxes)?, DESCRIPTION, ui::EmailUi);
    Ok(Arc::new(agent))
}

/// Builds the outer graph, with prompts overridden by files in `deps.prompts_folder`.
pub fn graph(deps: &AgentDeps, mailboxes: Arc<Mailboxes>) -> anyhow::Result<Graph<MailState>> {
    let prompts = Prompts::of(NAME, deps)?;
    let deps = MailDeps {
        models: deps.models.clone(),
        mailboxes,
        store: Memory(deps.store.clone()),
        prompts,
        spending: deps.spending.clone(),
        model: deps.model.clone(),
    };
    Ok(wired(&Arc::new(deps))?)
}

fn wired(deps: &Arc<MailDeps>) -> Result<Graph<MailState>, BuildError> {
    let response_agent = Graph::builder(RESPONSE_AGENT)
        .node(LLM_CALL, LlmCall(deps.clone()))
        .node(INTERRUPT_HANDLER, InterruptHandler(deps.clone()))
        .node(MARK_AS_READ, MarkAsReadNode(deps.clone()))
        .edge(START, LLM_CALL)
        .route(LLM_CALL, &[INTERRUPT_HANDLER, MARK_AS_READ], after_llm_call)
        .commands(INTERRUPT_HANDLER, &[LLM_CALL, END])
        .edge(MARK_AS_READ, END)
        .build()?;
    Graph::builder(NAME)
        .inputs(["email_input"])
        .context_schema(deps.models.context_schema())
        .node(TRIAGE_ROUTER, TriageRouter(deps.clone()))
        .node(
            TRIAGE_INTERRUPT_HANDLER,
            TriageInterruptHandler(deps.clone()),
        )
        .shared_subgraph(RESPONSE_AGENT, response_agent)
        .node(MARK_AS_READ, MarkAsReadNode(deps.clone()))
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

/// The long-term store, wrapped because `dyn Store` has no `Debug` and [`MailDeps`] derives it.
#[derive(Clone)]
struct Memory(Arc<dyn Store>);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
