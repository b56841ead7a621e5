//! An evaluation: five small repositories whose symbols, relations and entry points are known. Scores what the pages say about
//! them, and which names the pages invent.
//!
//! The repositories are text files in the folder `evaluation` of this crate, with what a good documentation names in
//! `expected.json`. [`evaluate`] runs the agents over each repository; [`evaluate_plain`] sends one plain prompt instead, and its
//! reply is scored in the same way.

mod blocks;
mod names;
mod repository;
mod score;

use std::path::Path;

use anyhow::{bail, ensure};
use archie_agent::user_folder::resolve_named;
use archie_agent::{Agent, AgentDeps, state_of};
use serde::Serialize;
use superstep::checkpoint::Metadata;
use superstep::{Memory, Outcome, Runtime};
use superstep_llm::{Message, Model, Request};

use crate::completeness::is_cut_off;
use crate::scan::{ScanOptions, Scans};
use crate::state::{AgentContext, AgentResult, AgentWorkflowConfig, DocsState, Status};
use crate::workflow::DocumentationWorkflow;

pub use repository::{
    ExpectedEntry, ExpectedRelation, ExpectedSymbol, SampleFile, SampleRepository, repositories,
};
pub use score::{FoundCount, PageText, RepositoryScore, score};

/// Agents that the evaluation runs: the ones whose pages are about symbols, relations and entry points. All seven would take
/// hours with a local model.
pub const WRITERS: [&str; 2] = ["architecture-analyzer", "flow-analyzer"];

/// Result of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// One score per repository, in their order.
    pub repositories: Vec<RepositoryScore>,
}

impl Evaluation {
    /// Returns a count over all repositories.
    pub fn total(&self, count: impl Fn(&RepositoryScore) -> FoundCount) -> FoundCount {
        let counts = self.repositories.iter().map(count);
        counts.fold(FoundCount::default(), |sum, one| FoundCount {
            found: sum.found + one.found,
            of: sum.of + one.of,
        })
    }

    /// Adds a repository. One that failed has no pages, so nothing of it is found.
    fn add(
        &mut self,
        repository: &SampleRepository,
        pages_expected: usize,
        pages: anyhow::Result<Vec<PageText>>,
    ) {
        let (pages, failed) = match pages {
            Ok(pages) => (pages, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        let scored = score(repository, &pages, pages_expected);
        self.repositories.push(RepositoryScore { failed, ..scored });
    }

    /// Returns the evaluation, or an error if every repository failed: then the scores say nothing about the model.
    fn checked(self) -> anyhow::Result<Self> {
        let mut failed = self.repositories.iter().map(|one| one.failed.as_deref());
        if let Some(Some(first)) = failed.next()
            && failed.all(|failed| failed.is_some())
        {
            bail!("no repository could be documented: {first}");
        }
        Ok(self)
    }
}

/// Documents the repositories with [`WRITERS`] and at most one refinement, and scores the pages. Writes the repositories below
/// `folder`, which the caller removes. Tells `progress` how many repositories are done.
pub async fn evaluate(
    repositories: &[SampleRepository],
    deps: &AgentDeps,
    model: &str,
    folder: &Path,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let agent = crate::agent(deps)?;
    let runtime = Runtime::new(Memory::default());
    agent.register(&runtime);
    let folder = resolve_named(folder)?;
    let mut evaluation = Evaluation::default();
    for (at, repository) in repositories.iter().enumerate() {
        let root = folder.join(&repository.name);
        repository.write(&root)?;
        let root = root.display().to_string();
        let pages = document(&agent, &runtime, repository, model, &root).await;
        // The cache of scans keeps the folder open.
        Scans::here().forget(&root, &ScanOptions::default());
        evaluation.add(repository, WRITERS.len(), pages);
        progress(at + 1);
    }
    evaluation.checked()
}

/// Runs the agents over a repository and returns their pages.
async fn document(
    agent: &Agent,
    runtime: &Runtime,
    repository: &SampleRepository,
    model: &str,
    root: &str,
) -> anyhow::Result<Vec<PageText>> {
    let thread = agent.thread(runtime, &repository.name, Metadata::default())?;
    let context = AgentContext {
        root: root.to_owned(),
        ..AgentContext::default()
    };
    let config = AgentWorkflowConfig {
        max_iterations: 1,
        ..AgentWorkflowConfig::default()
    };
    let workflow = DocumentationWorkflow {
        wanted: WRITERS.map(str::to_owned).to_vec(),
        model_name: model.to_owned(),
        // The pages are scored as they are in the state; none is written.
        output: format!("{root}/.arch-docs"),
        ..DocumentationWorkflow::default()
    };
    let stopped = workflow.execute(&context, &config, &*thread).await?;
    ensure!(
        stopped.outcome == Outcome::Finished,
        "the run stopped early: {:?}",
        stopped.outcome
    );
    let state: DocsState = state_of(&*thread).await?;
    Ok(state.results.iter().map(page_of).collect())
}

fn page_of(result: &AgentResult) -> PageText {
    let mut warnings = result.warnings.iter();
    let is_cut_off = warnings.any(|warning| warning.starts_with(CUT_OFF));
    PageText {
        text: result.markdown.clone(),
        is_complete: result.status == Status::Success && !is_cut_off,
    }
}

/// Sends one plain prompt per repository, with the README and the files in it, and scores the replies. Tells `progress` how many
/// repositories are done.
pub async fn evaluate_plain(
    repositories: &[SampleRepository],
    model: &dyn Model,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let mut evaluation = Evaluation::default();
    for (at, repository) in repositories.iter().enumerate() {
        let messages = vec![Message::user(plain_prompt(repository))];
        let request = Request::new("plain", messages).tokens_max(PLAIN_REPLY_TOKENS);
        let pages = match model.reply(&request).await {
            Ok(reply) => {
                let text = reply.text();
                let is_complete = !text.trim().is_empty() && !is_cut_off(&text, &reply.finish);
                Ok(vec![PageText { text, is_complete }])
            }
            Err(error) => Err(error.into()),
        };
        evaluation.add(repository, 1, pages);
        progress(at + 1);
    }
    evaluation.checked()
}

/// Returns what a person with a chat window would paste: the task, the README, and the files as far as they fit.
fn plain_prompt(repository: &SampleRepository) -> String {
    let is_readme = |file: &&SampleFile| file.path == "README.md";
    let (readme, others): (Vec<_>, Vec<_>) = repository.files.iter().partition(is_readme);
    let mut prompt = format!("{PLAIN_TASK}\n");
    for file in readme.into_iter().chain(others) {
        let text = format!("\n{}:\n\n{}", file.path, file.text);
        let room = PLAIN_BYTES.saturating_sub(prompt.len());
        prompt.push_str(&text[..text.floor_char_boundary(room)]);
    }
    prompt
}

/// Beginning of the warning on a page whose text was cut off. The result has no other trace of it.
const CUT_OFF: &str = "The text was cut off";

const PLAIN_TASK: &str = "Document this repository: purpose, structure, main types and functions, how \
    they relate, entry points.";

/// Length of the plain prompt: about 3,000 tokens.
const PLAIN_BYTES: usize = 9_000;

/// Maximum length of the plain reply: more than the agents may write on two pages.
const PLAIN_REPLY_TOKENS: u32 = 1_500;

#[cfg(test)]
mod tests;
