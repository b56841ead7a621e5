//! Planning: which pages no longer describe the tree, and what making them again may cost.

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
use super::workflow::asking::{SOURCE_TOKENS_UNKNOWN, TOKEN_BYTES};

/// Which pages to make again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redo {
    /// Stale pages, and pages made with another model or configuration.
    Changed,
    /// Stale pages only, whatever model or configuration made them.
    Incremental,
    /// Pages whose prompts or facts differ from those at this commit.
    Since(String),
    /// All pages.
    Everything,
}

/// Which agents have to run, and why.
#[derive(Debug)]
pub struct Plan {
    /// The scanned tree.
    pub tree: Arc<Tree>,
    /// The project that the agents would describe.
    pub context: AgentContext,
    /// Agents that have to run, each with the reason.
    pub wanted: Vec<(String, Stale)>,
    /// Agents whose pages still describe the tree.
    pub kept: Vec<String>,
    /// Entries of the manifest that were ignored, each with the reason.
    pub remarks: Vec<String>,
}

/// What to plan for.
#[derive(Debug)]
pub struct PlanRequest<'a> {
    /// Folder that the pages describe.
    pub root: &'a str,
    /// Which files of the folder the scan includes.
    pub options: &'a ScanOptions,
    /// Folder of the pages. Need not exist.
    pub folder: &'a Path,
    /// Names of the requested agents.
    pub agents: &'a [String],
    /// Limits and switches of the agents.
    pub config: &'a AgentWorkflowConfig,
    /// Name of the model.
    pub model: &'a str,
    /// Which pages to make again.
    pub redo: Redo,
}

/// Compares the tree with the existing pages and returns which agents have to run.
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
                let bytes = made.source_bytes(name).unwrap_or(SOURCE_BYTES);
                let reads_same = || {
                    manifest::source_record(agent, before, bytes)
                        == manifest::source_record(agent, &plan.tree, bytes)
                };
                (!(is_same && reads_same())).then_some(Stale::Facts)
            }),
        };
        match why {
            Some(why) => plan.wanted.push((name.clone(), why)),
            None => plan.kept.push(name.clone()),
        }
    }
    Ok(plan)
}

/// Scans the tree at a commit. The files are in a temporary folder, which is removed when the returned [`TempDir`] is dropped.
fn tree_at(commit: &str, asked: &PlanRequest<'_>, now: &Tree) -> anyhow::Result<(Tree, TempDir)> {
    ensure!(!commit.starts_with('-'), "`{commit}` is not a commit");
    let folder = tempfile::Builder::new().prefix("archie-docs-").tempdir()?;
    git::unpack(asked.root, commit, &UserFolder::open(folder.path())?)?;
    let mut tree = scan(folder.path(), asked.options, &Progress::default())?;
    // A project that takes its name from its folder would get the name of the temporary folder.
    tree.project.clone_from(&now.project);
    Ok((tree, folder))
}

/// Estimated calls, tokens and cost of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Number of model calls if every first draft is good enough.
    pub calls_min: u32,
    /// Number of model calls if every text is refined as often as allowed, without tool calls.
    pub calls_max: u32,
    /// Approximate upper limit of the tokens that the model reads.
    pub input_tokens: u64,
    /// Approximate upper limit of the cost. Unknown if the model's price is.
    pub cost: Cost,
}

/// Estimates what the agents of a plan may use.
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
        // The draft and every refinement read the source.
        let bytes = config
            .source_tokens
            .map_or(SOURCE_BYTES, |tokens| u64::from(tokens) * TOKEN_BYTES);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let source = plan
            .tree
            .source_map()
            .text(&plan.tree, agent.source_focus(), bytes);
        input_tokens += source.text.len() as u64 / 4 * u64::from(1 + rounds);
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

/// Length of the source that a model reads if neither a number is set nor the size of its context known, in bytes.
const SOURCE_BYTES: u64 = SOURCE_TOKENS_UNKNOWN * TOKEN_BYTES;

/// Typical length of an agent's text, in tokens.
const TEXT_TOKENS: u64 = 600;
