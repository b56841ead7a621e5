//! `analyze`: an analyst agent that interviews a person about a folder of notes.
//!
//! Asking the model and asking the person are two nodes on purpose: the model's turn is committed before the interrupt, so
//! resuming with an answer does not pay for that turn again.
//!
//! The agent never writes to a note, and never marks a quotation as checked that code did not find in the notes or in what a
//! tool returned.
//!
//! In reading order: [`graph`], [`state::AppState`], [`inputs`] (reads the notes, with `pdf` for PDF files), [`tools`] (calls tools),
//! `passages` (chooses what the model sees of notes that do not fit), `final_output` (collects the result), [`evidence`] and
//! `contradiction` (check what the model claims), [`result`] (writes the file). [`inquiry`] has the
//! commands next to the interview, and [`memory`] the file that they share. [`evaluation`] scores the agent.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [analyze](../../book/html/docs/analyze.html)
//! - [Evaluation](../../book/html/docs/evaluation.html)

mod contradiction;
pub mod evaluation;
pub mod evidence;
mod final_output;
#[doc(hidden)]
pub mod fuzzing;
pub mod inputs;
pub mod inquiry;
mod interview_end;
pub mod memory;
mod nodes;
mod passages;
mod pdf;
pub mod prompts;
mod repeats;
mod request;
pub mod result;
pub mod state;
mod step_text;
mod terms;
pub mod tools;
mod ui;

use std::sync::Arc;

use archie_agent::prompts::PromptFiles;
use archie_agent::{Agent, AgentDeps};
use superstep::{END, Graph, START};
use superstep_agent::unanswered_calls;

use nodes::{AnalysisInterruptNode, AnalysisPrepareNode, EchoNode, ReadNotesNode, SaveResultNode};
use prompts::{Prompts, QUERY};
use state::AppState;
use tools::AnalysisToolsNode;

pub use interview_end::user_is_done;
pub use ui::get_final_output;

/// Name of the graph and of the agent.
pub const NAME: &str = "analyze";
/// Node that calls the model for the next question or the result.
pub const ANALYSIS_PREPARE: &str = "ANALYSIS_PREPARE";
/// Node that interrupts with the model's question.
pub const ANALYSIS_INTERRUPT: &str = "ANALYSIS_INTERRUPT";

/// Node that calls the tools which the model requested.
pub const ANALYSIS_TOOLS: &str = "ANALYSIS_TOOLS";

/// Node that returns what follows `echo`, to try the shell and the store without a model.
pub const ECHO: &str = "ECHO";

/// Node that reads the notes among the files of the thread. Runs only if a caller of a server named some.
pub const READ_NOTES: &str = "READ_NOTES";

/// Node that writes the result into the files of the thread. Runs only if the notes came from a caller of a server.
pub const SAVE_RESULT: &str = "SAVE_RESULT";

/// One-line description, as the list of agents shows it.
pub const DESCRIPTION: &str = "an analyst who interviews you over a folder of notes";

/// Builds the agent, with its graph and its user interface.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let ui = ui::AnalyzeUi {
        folders: deps.thread_folders.clone(),
    };
    let agent = Agent::new(graph(deps)?, DESCRIPTION, ui);
    Ok(Arc::new(agent))
}

/// Builds the graph. Fails if a prompt file of the person cannot be read.
pub fn graph(deps: &AgentDeps) -> anyhow::Result<Graph<AppState>> {
    let prepare = AnalysisPrepareNode {
        models: deps.models.clone(),
        default_model: deps.model.clone(),
        prompts: Prompts::of(NAME, deps)?,
        spending: deps.spending.clone(),
        mcp: deps.mcp.clone(),
        web: deps.web.clone(),
    };
    let tools = AnalysisToolsNode {
        mcp: deps.mcp.clone(),
        web: deps.web.clone(),
    };
    let read_notes = ReadNotesNode {
        folders: deps.thread_folders.clone(),
    };
    let save_result = SaveResultNode {
        folders: deps.thread_folders.clone(),
    };
    let stores_files = deps.thread_folders.is_some();
    let graph = Graph::builder(NAME)
        .inputs(["userInput", "fileContents", "noteFiles"])
        .context_schema(deps.models.context_schema())
        .node(ANALYSIS_PREPARE, prepare)
        .node(ANALYSIS_INTERRUPT, AnalysisInterruptNode)
        .node(ANALYSIS_TOOLS, tools)
        .node(ECHO, EchoNode)
        .node(READ_NOTES, read_notes)
        .node(SAVE_RESULT, save_result)
        .route(
            START,
            &[ANALYSIS_PREPARE, READ_NOTES, ECHO, END],
            first_node,
        )
        .edge(READ_NOTES, ANALYSIS_PREPARE)
        .route(
            ANALYSIS_PREPARE,
            &[ANALYSIS_INTERRUPT, ANALYSIS_TOOLS, SAVE_RESULT, END],
            move |state: &AppState| {
                let is_over = !state.analysis_output.is_empty() || state.stopped.is_some();
                if is_over && stores_files && is_saved(state) {
                    SAVE_RESULT
                } else if is_over {
                    END
                } else if unanswered_calls(&state.tool_messages).is_empty() {
                    ANALYSIS_INTERRUPT
                } else {
                    ANALYSIS_TOOLS
                }
            },
        )
        .edge(ANALYSIS_INTERRUPT, ANALYSIS_PREPARE)
        .edge(ANALYSIS_TOOLS, ANALYSIS_PREPARE)
        .edge(SAVE_RESULT, END)
        .edge(ECHO, END)
        .build()?;
    Ok(graph)
}

/// Whether the graph itself writes the result. The command line writes it next to the notes of the person.
fn is_saved(state: &AppState) -> bool {
    !state.analysis_output.is_empty() && state.inputs.is_of_thread()
}

/// Routes by the keyword at the beginning of `userInput`: `analyze:` starts an interview, `echo` echoes, anything else is not
/// for this graph. An interview that was held already goes on whatever the input is.
fn first_node(state: &AppState) -> &'static str {
    let input = state.user_input.trim();
    let keyword = QUERY.trim_end();
    let begins = |word: &str| {
        input
            .get(..word.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
    };
    let is_query = begins(keyword) && !input[keyword.len()..].trim().is_empty();
    if input.is_empty() {
        END
    } else if (is_query || !state.analysis_history.is_empty()) && !state.note_files.is_empty() {
        READ_NOTES
    } else if is_query || !state.analysis_history.is_empty() {
        ANALYSIS_PREPARE
    } else if begins("echo") {
        ECHO
    } else {
        END
    }
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Role, Turn};

    #[test]
    fn a5_the_keyword_at_the_beginning_of_the_input_decides_the_first_node() {
        let first = |input: &str| {
            first_node(&AppState {
                user_input: input.to_owned(),
                ..AppState::default()
            })
        };
        for (input, node) in [
            ("analyze: Choose a queue", ANALYSIS_PREPARE),
            ("  Analyze: Choose a queue", ANALYSIS_PREPARE),
            ("analyze: echo", ANALYSIS_PREPARE),
            ("echo hello", ECHO),
            ("ECHO", ECHO),
            ("Choose a queue", END),
            ("please analyze: this", END),
            ("analyze:", END),
            ("ähnlich", END),
            ("", END),
        ] {
            assert_eq!(first(input), node, "{input:?}");
        }
        // A finished analysis whose notes have changed.
        let reopened = AppState {
            user_input: "These notes have changed: a.md.".to_owned(),
            analysis_history: vec![Turn {
                role: Role::User,
                content: "analyze: x".to_owned(),
            }],
            ..AppState::default()
        };
        assert_eq!(first_node(&reopened), ANALYSIS_PREPARE);
    }
}
