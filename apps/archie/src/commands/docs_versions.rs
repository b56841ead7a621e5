//! `archie docs versions`: shows every version of the texts that the agents of a thread wrote.

use anyhow::{Context, bail};
use archie_agent::{Exit, state_of};
use archie_docs::NAME;
use archie_docs::state::{AgentWorkflowState, DocsState, ExecutionState, Version};
use serde_json::json;

use crate::session::Session;

/// Which versions to show.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct DocsVersionsArgs {
    /// Thread id or unique prefix
    pub thread: String,
    /// Agent whose texts are printed. Default: lists all agents
    pub agent: Option<String>,
    /// Print only this version; 1 is the first draft
    #[arg(long, value_name = "N", requires = "agent")]
    pub number: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Versions of one agent's text, the first draft first.
struct AgentVersions {
    agent: String,
    versions: Vec<Version>,
}

/// Runs `archie docs versions`.
pub(super) async fn handle_docs_versions_command(
    args: &DocsVersionsArgs,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let mut all = load(&args.thread, session).await?;
    if let Some(wanted) = &args.agent {
        let names: Vec<String> = all.iter().map(|of| of.agent.clone()).collect();
        all.retain(|of| of.agent == *wanted);
        if all.is_empty() {
            bail!(
                "the thread has no text of `{wanted}`; it has texts of {}",
                names.join(", ")
            );
        }
    }
    if args.json {
        let shown: Vec<_> = all
            .iter()
            .map(|of| json!({ "agent": of.agent, "versions": of.versions }))
            .collect();
        session.terminal.json(&json!(shown));
        return Ok(Exit::Done);
    }
    for of in &all {
        match &args.agent {
            None => session.terminal.line(&list(of)),
            Some(_) => print(of, args.number, session)?,
        }
    }
    Ok(Exit::Done)
}

/// Reads the versions of all agents: of those that are done from the results, or from the subgraph around the agents while others
/// run; of the others from their own subgraphs.
async fn load(thread: &str, session: &Session<'_>) -> anyhow::Result<Vec<AgentVersions>> {
    let (thread, row) = session.app.find(thread).await?;
    if row.graph != NAME {
        bail!(
            "`{}` is a thread of `{}`, not of `{NAME}`",
            row.thread,
            row.graph
        );
    }
    let state: DocsState = state_of(&*thread).await?;
    let mut all: Vec<AgentVersions> = state
        .results
        .into_iter()
        .map(|result| AgentVersions {
            agent: result.agent_name,
            versions: result.versions,
        })
        .collect();
    for inner in thread.subgraphs(None).await? {
        let levels = inner.frame.segments();
        let node = levels.last().map(|level| level.node.as_str());
        if node == Some(archie_docs::EXECUTE_AGENTS) {
            let state: ExecutionState = inner.values.decode()?;
            for finished in state.finished {
                put(&mut all, finished.agent, finished.versions);
            }
        } else if node == Some(archie_docs::AGENT.name()) {
            let state: AgentWorkflowState = inner.values.decode()?;
            put(&mut all, state.agent, state.versions);
        }
    }
    if all.is_empty() {
        bail!("no agent of this thread has written a text yet");
    }
    Ok(all)
}

/// Adds the versions of an agent. One that runs again for shared questions begins with those of its first run, so the later ones
/// replace them.
fn put(all: &mut Vec<AgentVersions>, agent: String, versions: Vec<Version>) {
    match all.iter_mut().find(|of| of.agent == agent) {
        Some(known) => known.versions = versions,
        None => all.push(AgentVersions { agent, versions }),
    }
}

fn list(of: &AgentVersions) -> String {
    let scores: Vec<String> = of
        .versions
        .iter()
        .enumerate()
        .map(|(at, version)| format!("{}: {}", at + 1, score(version)))
        .collect();
    format!("{}  {}", of.agent, scores.join(", "))
}

fn score(version: &Version) -> String {
    match version.is_unscored {
        true => "not scored".to_owned(),
        false => version.score.to_string(),
    }
}

fn print(of: &AgentVersions, number: Option<usize>, session: &Session<'_>) -> anyhow::Result<()> {
    if let Some(number) = number {
        let version = number.checked_sub(1).and_then(|at| of.versions.get(at));
        let version = version.with_context(|| {
            format!(
                "there is no version {number} of `{}`; there are {}",
                of.agent,
                of.versions.len()
            )
        })?;
        session.terminal.line(&version.analysis);
        return Ok(());
    }
    for (at, version) in of.versions.iter().enumerate() {
        let number = at + 1;
        session.terminal.line(&format!(
            "--- {} version {number}: {}",
            of.agent,
            score(version)
        ));
        session.terminal.line(&version.analysis);
    }
    Ok(())
}

#[test]
fn a_second_run_of_an_agent_replaces_its_first() {
    let version = |score| Version {
        score,
        ..Version::default()
    };
    let mut all = Vec::new();
    put(&mut all, "a".to_owned(), vec![version(62)]);
    put(&mut all, "b".to_owned(), vec![version(91)]);
    put(&mut all, "a".to_owned(), vec![version(62), version(85)]);
    let listed: Vec<String> = all.iter().map(list).collect();
    assert_eq!(listed, ["a  1: 62, 2: 85", "b  1: 91"]);
}
