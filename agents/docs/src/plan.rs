//! What has to be done: which pages no longer describe the tree, and what it may cost to make them anew.

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use archie_agent::user_folder::UserFolder;
use superstep_llm::{Cost, ModelName, Prices, Usage};
use tempfile::TempDir;

use super::deps::DocsDeps;
use super::git;
use super::manifest::{self, Manifest, Stale};
use super::nodes::context;
use super::pages;
use super::scan::{Progress, ScanOptions, Tree, scan};
use super::state::{AgentContext, AgentWorkflowConfig};

/// How it is decided which pages are made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redo {
    /// Those that are stale, or were made with another model or other settings.
    Changed,
    /// Those that are stale, whatever they were made with.
    Incremental,
    /// Those whose facts were others at this commit.
    Since(String),
    /// All.
    Everything,
}

/// What has to be done.
#[derive(Debug)]
pub struct Plan {
    /// The tree.
    pub tree: Arc<Tree>,
    /// What agents would work on.
    pub context: AgentContext,
    /// The agents that have something to do, and why.
    pub wanted: Vec<(String, Stale)>,
    /// Those whose pages still hold.
    pub kept: Vec<String>,
    /// What in the folder of the pages is not taken as it is, and why.
    pub remarks: Vec<String>,
}

/// What a plan is made for.
#[derive(Debug)]
pub struct PlanRequest<'a> {
    /// The folder that is described.
    pub root: &'a str,
    /// What of it is looked at.
    pub options: &'a ScanOptions,
    /// Where the pages are.
    pub folder: &'a Path,
    /// The agents that were asked for.
    pub agents: &'a [String],
    /// How far they go.
    pub config: &'a AgentWorkflowConfig,
    /// With which model.
    pub model: &'a str,
    /// What is made anew.
    pub redo: Redo,
}

/// Looks at the tree and at the pages.
pub fn plan(deps: &DocsDeps, tree: Arc<Tree>, asked: &PlanRequest<'_>) -> anyhow::Result<Plan> {
    let folder = pages::open(Path::new(asked.root), asked.folder, false)?;
    let made = Manifest::read(folder.as_ref())?;
    let context = context(asked.root, asked.options, &tree);
    let settings = manifest::settings(asked.config, asked.model);
    let before = match &asked.redo {
        Redo::Since(commit) => Some(tree_at(commit, asked, &tree)?),
        _ => None,
    };
    let mut plan = Plan {
        wanted: Vec::new(),
        kept: Vec::new(),
        remarks: made.ignored.clone(),
        context,
        tree,
    };
    for name in asked.agents {
        let agent = &**deps.agent(name)?;
        let stale = || made.stale(agent, &plan.context, &plan.tree, folder.as_ref());
        let why = match &asked.redo {
            Redo::Everything => Some(Stale::Forced),
            Redo::Incremental => stale(),
            Redo::Changed => stale().or_else(|| {
                made.has_other_settings(name, &settings)
                    .then_some(Stale::Settings)
            }),
            Redo::Since(_) => before.as_ref().and_then(|(before, _)| {
                let then = super::nodes::context(asked.root, asked.options, before);
                let is_same = manifest::inputs(agent, &then, before)
                    == manifest::inputs(agent, &plan.context, &plan.tree);
                (!is_same).then_some(Stale::Facts)
            }),
        };
        match why {
            Some(why) => plan.wanted.push((name.clone(), why)),
            None => plan.kept.push(name.clone()),
        }
    }
    Ok(plan)
}

/// The tree as it was at a commit, in a folder that is removed with it.
fn tree_at(commit: &str, asked: &PlanRequest<'_>, now: &Tree) -> anyhow::Result<(Tree, TempDir)> {
    ensure!(!commit.starts_with('-'), "`{commit}` is not a commit");
    let folder = tempfile::Builder::new().prefix("archie-docs-").tempdir()?;
    git::unpack(asked.root, commit, &UserFolder::open(folder.path())?)?;
    let mut tree = scan(folder.path(), asked.options, &Progress::default())?;
    // A folder without a name in a manifest is named as it is now.
    tree.project.clone_from(&now.project);
    Ok((tree, folder))
}

/// What a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Calls, if every first text is good enough.
    pub calls_min: u32,
    /// Calls, if every text is refined as often as it may be.
    pub calls_max: u32,
    /// Tokens that the model reads, at most and about.
    pub input_tokens: u64,
    /// What that costs at most, if the price is known.
    pub cost: Cost,
}

/// What these agents may take.
pub fn estimate(
    deps: &DocsDeps,
    plan: &Plan,
    config: &AgentWorkflowConfig,
    model: &str,
) -> anyhow::Result<Estimate> {
    let rounds = match config.enable_self_questioning {
        true => config.max_iterations,
        false => 0,
    };
    let of_round = match config.parallel_answers {
        true => 3 + 5,
        false => 3,
    };
    let agents = u32::try_from(plan.wanted.len()).unwrap_or(u32::MAX);
    let calls_max = agents * (2 + rounds * of_round);
    let mut input_tokens = 0;
    for (name, _) in &plan.wanted {
        let agent = deps.agent(name)?;
        let prompt = agent.build_system_prompt(&plan.context).len()
            + agent.build_human_prompt(&plan.context, &plan.tree).len();
        input_tokens += (prompt as u64 / 4 + TEXT_TOKENS) * u64::from(2 + rounds * of_round);
    }
    let usage = Usage {
        input_tokens,
        output_tokens: u64::from(calls_max) * TEXT_TOKENS / 2,
        cached_tokens: 0,
    };
    let cost = match model.parse::<ModelName>() {
        Ok(name) => Prices::known().cost(&name, Some(&usage)),
        Err(_) => Cost::Unknown,
    };
    Ok(Estimate {
        calls_min: agents * 2,
        calls_max,
        input_tokens,
        cost,
    })
}

/// A text of an agent is about this long.
const TEXT_TOKENS: u64 = 600;
