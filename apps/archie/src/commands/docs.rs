//! `archie docs`: scans the folder, prints the plan and its estimated cost, and starts the agents.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use archie_agent::Exit;
use archie_agent::printable::one_line;
use archie_agent::user_folder::{UserFolder, resolve_named};
use archie_docs::manifest::Manifest;
use archie_docs::plan::{self, Plan, PlanRequest, Redo};
use archie_docs::scan::{Progress, ScanOptions, Tree};
use archie_docs::state::AgentWorkflowConfig;
use archie_docs::workflow::DocumentationWorkflow;
use archie_docs::{DocsDeps, NAME, pages};
use serde_json::json;
use superstep_llm::Cost;

use super::docs_versions::{DocsVersionsArgs, handle_docs_versions_command};
use crate::session::Session;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DocsArgs {
    /// Folder to document
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Folder for the pages. Default: `.arch-docs` in the folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Run only these agents. Default: all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Refinements: quick one, normal three, deep five
    #[arg(long, value_enum, default_value_t = Depth::Normal)]
    pub depth: Depth,
    /// Score from 0 to 100 at which an agent stops refining
    #[arg(long, value_name = "SCORE", default_value_t = 80, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub clarity_threshold: u32,
    /// Derive the threshold from earlier scores with the same model
    #[arg(long)]
    pub learn_threshold: bool,
    /// Maximum number of refinements. Default: set by --depth
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// Stop after a refinement that gains fewer points
    #[arg(long, value_name = "POINTS", default_value_t = 5)]
    pub min_improvement: u32,
    /// Write and score once, without refinement
    #[arg(long)]
    pub no_self_questioning: bool,
    /// Answer the questions of a round in parallel, one call each
    #[arg(long)]
    pub parallel_answers: bool,
    /// Let the model read more files of the folder when it refines
    #[arg(long)]
    pub tools: bool,
    /// Pass open questions to the other agents for one more round
    #[arg(long)]
    pub share_questions: bool,
    /// Ask before each refinement, with scores, questions and cost
    #[arg(long)]
    pub gate: bool,
    /// Model calls at a time. Default: as many as the server tells
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parallel: Option<u32>,
    /// Tokens of source per prompt. Default: an eighth of the context
    #[arg(long, value_name = "N")]
    pub source_tokens: Option<u32>,
    /// Include only matching files; repeatable
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Exclude matching files; repeatable
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Rewrite only pages whose sources changed, for any model and settings
    #[arg(long, conflicts_with_all = ["since", "force", "check"])]
    pub incremental: bool,
    /// Rewrite only pages whose sources differ from this commit
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["force", "check"])]
    pub since: Option<String>,
    /// Rewrite every page
    #[arg(long, conflicts_with = "check")]
    pub force: bool,
    /// Check whether the pages are up to date, without a model
    #[arg(long)]
    pub check: bool,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
    /// Something else than writing pages.
    #[command(subcommand)]
    pub command: Option<DocsSubcommand>,
}

/// What else can be done.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum DocsSubcommand {
    /// Show every version of the texts of a thread
    Versions(DocsVersionsArgs),
}

/// How much is spent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Depth {
    /// One refinement
    Quick,
    /// Three refinements
    Normal,
    /// Five refinements
    Deep,
}

impl Default for DocsArgs {
    fn default() -> Self {
        Self {
            folder: ".".into(),
            output: None,
            agents: Vec::new(),
            depth: Depth::Normal,
            clarity_threshold: 80,
            learn_threshold: false,
            max_iterations: None,
            min_improvement: 5,
            no_self_questioning: false,
            parallel_answers: false,
            tools: false,
            share_questions: false,
            gate: false,
            parallel: None,
            source_tokens: None,
            include: Vec::new(),
            exclude: Vec::new(),
            incremental: false,
            since: None,
            force: false,
            check: false,
            json: false,
            command: None,
        }
    }
}

impl DocsArgs {
    fn config(&self) -> AgentWorkflowConfig {
        let usual = match self.depth {
            Depth::Quick => 1,
            Depth::Normal => 3,
            Depth::Deep => 5,
        };
        AgentWorkflowConfig {
            max_iterations: self.max_iterations.unwrap_or(usual),
            clarity_threshold: self.clarity_threshold,
            min_improvement: self.min_improvement,
            enable_self_questioning: !self.no_self_questioning,
            parallel_answers: self.parallel_answers,
            tools: self.tools,
            gate: self.gate,
            share_questions: self.share_questions,
            source_tokens: self.source_tokens,
        }
    }

    fn redo(&self) -> Redo {
        match &self.since {
            Some(commit) => Redo::Since(commit.clone()),
            None if self.force => Redo::Everything,
            None if self.incremental || self.check => Redo::Incremental,
            None => Redo::Changed,
        }
    }
}

/// Absolute paths, because a thread may be resumed from another folder.
#[derive(Debug)]
struct Places {
    root: String,
    output: PathBuf,
    options: ScanOptions,
}

impl Places {
    fn of(args: &DocsArgs) -> anyhow::Result<Self> {
        let no_folder = || format!("there is no folder `{}`", args.folder.display());
        // Opened only to check that it is a readable folder.
        UserFolder::open(&args.folder).with_context(no_folder)?;
        let root = resolve_named(&args.folder).with_context(no_folder)?;
        let output = match &args.output {
            Some(output) => beside_root(output, &root)?,
            None => root.join(OUTPUT),
        };
        let below = output
            .strip_prefix(&root)
            .ok()
            .filter(|below| !below.as_os_str().is_empty());
        let options = ScanOptions {
            include: args.include.clone(),
            exclude: args.exclude.clone(),
            output: below.map(|below| below.display().to_string()),
        };
        Ok(Self {
            root: root.display().to_string(),
            output,
            options,
        })
    }
}

/// Resolves the output folder that the person named. Follows links on the way to it, but not links inside the documented
/// folder: its author may have placed them there.
fn beside_root(output: &Path, root: &Path) -> anyhow::Result<PathBuf> {
    let full = std::path::absolute(output)?;
    let is_root = |above: &&Path| resolve_named(above).is_ok_and(|above| above == root);
    let below = full.ancestors().find(is_root);
    match below.and_then(|above| full.strip_prefix(above).ok()) {
        Some(below)
            if below
                .components()
                .all(|part| matches!(part, Component::Normal(_))) =>
        {
            Ok(root.join(below))
        }
        _ => Ok(resolve_named(output)?),
    }
}

/// The command with the agent's dependencies.
struct DocsCommand {
    deps: DocsDeps,
}

impl DocsCommand {
    /// Runs `archie docs`.
    async fn handle(
        &self,
        args: &DocsArgs,
        model: &str,
        session: &Session<'_>,
    ) -> anyhow::Result<Exit> {
        let places = Places::of(args)?;
        let config = args.config();
        self.deps.scans.forget(&places.root, &places.options);
        let tree = self.scan(&places, session).await?;
        let agents = match args.agents.is_empty() {
            true => self
                .deps
                .agents
                .iter()
                .map(|agent| agent.get_agent_name().to_owned())
                .collect(),
            false => args.agents.clone(),
        };
        let wanted = PlanRequest {
            root: &places.root,
            options: &places.options,
            folder: &places.output,
            agents: &agents,
            config: &config,
            model,
            redo: args.redo(),
        };
        let plan = plan::plan(&self.deps, tree, &wanted)?;
        for remark in plan.remarks.iter().take(UNREAD_SHOWN) {
            session.terminal.aside(remark);
        }
        if args.check {
            return Ok(tell_check(&plan, session));
        }
        if plan.wanted.is_empty() {
            session
                .tell("nothing has changed; every page still describes the tree (0 model calls)");
            if session.json {
                session
                    .terminal
                    .json(&json!({ "changed": [], "kept": plan.kept, "calls": 0 }));
            }
            return Ok(Exit::Done);
        }
        self.tell_plan(&plan, &config, model, session)?;
        let workflow = self.workflow(&places, &plan, args, model)?;
        let mut context = plan.context.clone();
        context.parallel = args.parallel;
        let agent = session.app.agent(NAME)?;
        let thread =
            session.new_thread(agent, &format!("documentation of {}", plan.tree.project))?;
        session.tell(&format!("thread {}", thread.id()));
        let driven = workflow.execute(&context, &config, &*thread);
        session.follow(agent, &*thread, Box::pin(driven)).await
    }

    fn workflow(
        &self,
        places: &Places,
        plan: &Plan,
        args: &DocsArgs,
        model: &str,
    ) -> anyhow::Result<DocumentationWorkflow> {
        let folder = pages::open(Path::new(&places.root), &places.output, false)?;
        let made = Manifest::read(folder.as_ref())?;
        let wanted: Vec<String> = plan.wanted.iter().map(|(agent, _)| agent.clone()).collect();
        let times: BTreeMap<String, u64> = wanted
            .iter()
            .map(|agent| (agent.clone(), made.times(agent)))
            .collect();
        let mut learned = BTreeMap::new();
        for agent in wanted.iter().filter(|_| args.learn_threshold) {
            if let Some(threshold) = made.learned(agent, model, args.clarity_threshold) {
                learned.insert(agent.clone(), threshold);
            }
        }
        Ok(DocumentationWorkflow {
            wanted,
            model_name: model.to_owned(),
            output: places.output.display().to_string(),
            thresholds: learned,
            times,
        })
    }

    /// Scans the folder and prints progress.
    async fn scan(&self, places: &Places, session: &Session<'_>) -> anyhow::Result<Arc<Tree>> {
        let progress = Arc::new(Progress::default());
        let mut scanned = std::pin::pin!(self.deps.scans.tree(
            &places.root,
            &places.options,
            &progress
        ));
        let tree = loop {
            tokio::select! {
                tree = &mut scanned => break tree?,
                () = tokio::time::sleep(SHOWN_EVERY) => {
                    let files = progress.files.load(Ordering::Relaxed);
                    session.terminal.aside(&format!("{files} files scanned"));
                }
            }
        };
        let languages: Vec<String> = tree
            .languages()
            .into_iter()
            .map(|(language, files)| format!("{} {files}", language.word()))
            .collect();
        session.tell(&format!(
            "{}: {} files in {} directories ({})",
            one_line(&tree.project),
            tree.files.len(),
            tree.directories.len(),
            languages.join(", ")
        ));
        for unread in tree.unread.iter().take(UNREAD_SHOWN) {
            session
                .terminal
                .aside(&format!("not read: {}", one_line(unread)));
        }
        if let Some(more @ 1..) = tree.unread.len().checked_sub(UNREAD_SHOWN) {
            session.terminal.aside(&format!("not read: {more} more"));
        }
        Ok(tree)
    }

    fn tell_plan(
        &self,
        plan: &Plan,
        config: &AgentWorkflowConfig,
        model: &str,
        session: &Session<'_>,
    ) -> anyhow::Result<()> {
        for (agent, why) in &plan.wanted {
            session.tell(&one_line(&format!("{agent}: {why}")));
        }
        if !plan.kept.is_empty() {
            session.tell(&format!("kept: {}", plan.kept.join(", ")));
        }
        let estimate = plan::estimate(&self.deps, plan, config, model)?;
        let cost = match estimate.cost {
            Cost::NanoDollars(_) => format!(", cost up to {}", estimate.cost),
            Cost::Unknown => String::new(),
        };
        session.tell(&format!(
            "estimate: {} to {} model calls, up to {} tokens in{cost}",
            estimate.calls_min, estimate.calls_max, estimate.input_tokens
        ));
        Ok(())
    }
}

/// Runs `archie docs`.
pub async fn handle_docs_command(
    args: &DocsArgs,
    model: &str,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    if let Some(DocsSubcommand::Versions(args)) = &args.command {
        return handle_docs_versions_command(args, session).await;
    }
    let command = DocsCommand {
        deps: DocsDeps::new(&session.app.deps())?,
    };
    command.handle(args, model, session).await
}

fn tell_check(plan: &Plan, session: &Session<'_>) -> Exit {
    for (agent, why) in &plan.wanted {
        session.tell(&one_line(&format!("stale: {agent}: {why}")));
    }
    if session.json {
        let stale = plan
            .wanted
            .iter()
            .map(|(agent, why)| json!({ "agent": agent, "why": why.to_string() }));
        session
            .terminal
            .json(&json!({ "fresh": plan.kept, "stale": stale.collect::<Vec<_>>() }));
    }
    match plan.wanted.is_empty() {
        true => {
            session.tell("every page describes the tree as it is");
            Exit::Done
        }
        false => {
            session.tell("run `archie docs --incremental` to bring them up to date");
            Exit::Failed
        }
    }
}

/// Default output folder, inside the documented folder.
const OUTPUT: &str = ".arch-docs";
/// Maximum number of unreadable files, and of remarks, that are printed.
const UNREAD_SHOWN: usize = 50;
const SHOWN_EVERY: Duration = Duration::from_millis(500);
