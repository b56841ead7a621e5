//! `archie sheet`: analyzes a workbook, replays a recipe, or writes the workbook of a step.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use archie_agent::printable::one_line;
use archie_agent::style::{Face, Style};
use archie_agent::user_folder::{Access, read_named_file, resolve_named, write_named_file};
use archie_agent::{Agent, Exit, Terminal, Waiting, state_of};
use archie_sheet::book::mirror::Form;
use archie_sheet::recipe::{Recipe, open_posts};
use archie_sheet::sandbox::{Kind, Limits};
use archie_sheet::service::{self, AnalysisRequest};
use archie_sheet::snapshots::SnapshotStore;
use archie_sheet::state::{Actions, GraphState, InformerSpec};
use archie_sheet::{NAME, output};
use superstep::checkpoint::BoxFuture;
use superstep::{AnyRunResult, AnyThread};

use super::sheet_diff;
use crate::session::Session;

/// What was asked for.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SheetArgs {
    /// Something else than a new analysis.
    #[command(subcommand)]
    pub other: Option<SheetCommand>,
    /// Workbook (.xlsx or .xlsm), which is never written to
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Start with the workbook after a step of another thread
    #[arg(long, value_name = "THREAD@STEP", conflicts_with = "file")]
    pub from: Option<String>,
    /// What to do with the workbook. Default: asks for it
    #[arg(long)]
    pub instruction: Option<String>,
    /// Background information
    #[arg(long, default_value = "")]
    pub context: String,
    /// Let an informer look things up in the sheets
    #[arg(long)]
    pub with_informer: bool,
    /// Form of the informer's findings
    #[arg(long, value_enum, default_value_t)]
    pub informer_form: FormArg,
    /// Maximum number of planner calls
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub max_steps: u32,
    /// How the planner acts: tool calls, or text for models without them
    #[arg(long, value_enum, default_value_t)]
    pub actions: ActionsArg,
    /// What all runs of code have in common.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// [`Form`], as it is typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FormArg {
    /// A table in Markdown.
    #[default]
    Markdown,
    /// A list of objects.
    Json,
    /// A table in HTML.
    Html,
}

impl From<FormArg> for Form {
    fn from(form: FormArg) -> Self {
        match form {
            FormArg::Markdown => Self::Markdown,
            FormArg::Json => Self::Json,
            FormArg::Html => Self::Html,
        }
    }
}

/// [`Actions`], as they are typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ActionsArg {
    /// As calls of tools.
    #[default]
    Calls,
    /// As text: `Think:`, `Action:`, `Action Input:`, `Finish:`.
    Text,
}

impl From<ActionsArg> for Actions {
    fn from(actions: ActionsArg) -> Self {
        match actions {
            ActionsArg::Calls => Self::Calls,
            ActionsArg::Text => Self::Text,
        }
    }
}

/// What all runs of code have in common.
#[derive(Debug, Clone, clap::Args)]
pub struct CommonArgs {
    /// Folder for the results
    #[arg(long, alias = "output-dir", default_value = OUTPUT, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: PathBuf,
    /// Save all changes without asking
    #[arg(long)]
    pub yes: bool,
    /// Run code without a sandbox, with all your files and the network
    #[arg(long)]
    pub unsandboxed: bool,
    /// Time limit of one run of code
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    pub time_limit: u64,
    /// Memory limit of one run of code
    #[arg(long, default_value_t = 3072, value_name = "MB")]
    pub memory_limit: u64,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// Something else than a new analysis.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum SheetCommand {
    /// Apply the code.py of an accepted run to another workbook
    Replay {
        /// Recipe: the code.py of an accepted run
        #[arg(value_hint = clap::ValueHint::FilePath)]
        recipe: PathBuf,
        /// Workbook
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        on: PathBuf,
        /// What all runs of code have in common.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Analyze a German list of open items by rules, without a model
    OpenPosts {
        /// Workbook
        #[arg(value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
        /// Reference date, YYYY-MM-DD
        #[arg(long, value_name = "DAY")]
        as_of: String,
        /// What all runs of code have in common.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Compare two workbooks: sheets, cells, formulas and formats
    Diff {
        /// First workbook
        #[arg(value_hint = clap::ValueHint::FilePath)]
        one: PathBuf,
        /// Second workbook
        #[arg(value_hint = clap::ValueHint::FilePath)]
        other: PathBuf,
        /// Print the differences as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the workbook after a step of a thread; step 0 is the input
    At {
        /// Thread id or unique prefix
        thread: String,
        /// Step
        step: u32,
        /// File to write
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        output: PathBuf,
    },
}

impl SheetArgs {
    /// Returns whether stdout gets only the result, as JSON.
    pub fn json(&self) -> bool {
        match &self.other {
            None => self.common.json,
            Some(SheetCommand::Replay { common, .. } | SheetCommand::OpenPosts { common, .. }) => {
                common.json
            }
            Some(SheetCommand::Diff { json, .. }) => *json,
            Some(SheetCommand::At { .. }) => false,
        }
    }
}

/// Runs `archie sheet`.
pub async fn handle_sheet_command(args: &SheetArgs, session: &Session<'_>) -> anyhow::Result<Exit> {
    match &args.other {
        None => analyse(args, session).await,
        Some(SheetCommand::Replay { recipe, on, common }) => {
            let bytes = read_named_file(recipe, RECIPE_BYTES_MAX)?;
            let text = String::from_utf8(bytes)
                .with_context(|| format!("{} is not text", recipe.display()))?;
            let read = Recipe::read(&text)?;
            if !read.approved {
                bail!("the changes of this recipe's run were not accepted; accept them first");
            }
            play(read, on, common, session).await
        }
        Some(SheetCommand::OpenPosts {
            file,
            as_of,
            common,
        }) => {
            let day = chrono::NaiveDate::parse_from_str(as_of, "%Y-%m-%d");
            let is_day = day.is_ok_and(|day| day.to_string() == *as_of);
            if !is_day {
                bail!("`{as_of}` is not a day; write YYYY-MM-DD");
            }
            play(open_posts(as_of), file, common, session).await
        }
        Some(SheetCommand::Diff { one, other, json }) => {
            sheet_diff::files(one, other, *json, session.terminal)
        }
        Some(SheetCommand::At {
            thread,
            step,
            output,
        }) => at(thread, *step, output, session).await,
    }
}

async fn analyse(args: &SheetArgs, session: &Session<'_>) -> anyhow::Result<Exit> {
    let source = match (&args.file, &args.from) {
        (Some(file), _) => Source::File(file.clone()),
        (None, Some(from)) => step_of(from, session).await?,
        (None, None) => {
            bail!("no workbook was given; write `archie sheet FILE --instruction \"…\"`")
        }
    };
    let model = session.app.ready_model().await?;
    let instruction = match &args.instruction {
        Some(instruction) => instruction.clone(),
        None => session
            .terminal
            .ask("What is to be done with it? ")?
            .unwrap_or_default(),
    };
    if instruction.trim().is_empty() {
        bail!("nothing to do was given; say it with --instruction \"…\"");
    }
    let informer = InformerSpec {
        model: model.clone(),
        form: args.informer_form.into(),
    };
    let order = AnalysisRequest {
        instruction,
        context: args.context.clone(),
        model,
        actions: args.actions.into(),
        informer: args.with_informer.then_some(informer),
        max_steps: args.max_steps,
        ..order(&args.common)
    };
    begin(order, source, &args.common, session).await
}

async fn play(
    recipe: Recipe,
    file: &Path,
    common: &CommonArgs,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let steps = u32::try_from(recipe.steps.len())?;
    let order = AnalysisRequest {
        instruction: recipe.instruction.clone(),
        max_steps: steps + 1,
        recipe: Some(recipe),
        ..order(common)
    };
    begin(order, Source::File(file.to_owned()), common, session).await
}

fn order(common: &CommonArgs) -> AnalysisRequest {
    AnalysisRequest {
        instruction: String::new(),
        context: String::new(),
        output_dir: absolute(&common.output),
        model: String::new(),
        actions: Actions::default(),
        informer: None,
        max_steps: 0,
        sandbox: if common.unsandboxed {
            Kind::Unsandboxed
        } else {
            Kind::Bubblewrap
        },
        limits: Limits {
            time_ms: common.time_limit.saturating_mul(1_000),
            cpu_s: common.time_limit,
            memory_bytes: common.memory_limit << 20,
            ..Limits::default()
        },
        recipe: None,
    }
}

/// Resolves the output folder now, so that `resume` from another folder uses the same one. Follows links in a path that the
/// person named. The default folder is not resolved: the person did not name it, so a link in its place is refused on writing.
fn absolute(folder: &Path) -> String {
    let full = match folder == Path::new(OUTPUT) {
        true => resolve_named(Path::new(".")).map(|here| here.join(OUTPUT)),
        false => resolve_named(folder),
    };
    full.unwrap_or_else(|_| folder.to_owned())
        .display()
        .to_string()
}

async fn begin(
    order: AnalysisRequest,
    source: Source,
    common: &CommonArgs,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let agent = session.app.agent(NAME)?;
    let thread = session.new_thread(agent, &order.instruction)?;
    let id = thread.id().clone();
    let opened = match &source {
        Source::File(file) => service::open(file, &snapshots(session), &id)?,
        Source::Step { name, bytes } => service::open_bytes(name, bytes, &snapshots(session), &id)?,
    };
    if common.unsandboxed {
        session
            .terminal
            .aside("without a sandbox: the code of the model can do whatever you can");
    }
    session.tell(&format!(
        "thread {id}  read {}",
        one_line(&opened.handle.path)
    ));
    opened
        .sheets
        .iter()
        .for_each(|line| session.tell(&format!("  {}", one_line(line))));
    opened
        .seen
        .remarks()
        .iter()
        .for_each(|remark| session.tell(&format!("  {}", one_line(remark))));
    let run = async { Ok(service::run_analysis(&*thread, &order, &opened).await?) };
    match common.yes {
        false => session.follow(agent, &*thread, Box::pin(run)).await,
        true => accept_all(session, agent, &*thread, Box::pin(run)).await,
    }
}

/// Source of the workbook.
enum Source {
    File(PathBuf),
    /// Workbook after a step of another thread.
    Step {
        name: String,
        bytes: Vec<u8>,
    },
}

async fn step_of(from: &str, session: &Session<'_>) -> anyhow::Result<Source> {
    let (thread, step) = from.split_once('@').context("write THREAD@STEP")?;
    let step = step.parse().context("the step is a number")?;
    let bytes = workbook_at(thread, step, session).await?;
    Ok(Source::Step {
        name: from.to_owned(),
        bytes,
    })
}

/// Stays with a run and accepts every change set. Other questions, such as a budget, still go to the person.
async fn accept_all<'t>(
    session: &Session<'t>,
    agent: &Agent,
    thread: &'t dyn AnyThread,
    run: BoxFuture<'t, anyhow::Result<AnyRunResult>>,
) -> anyhow::Result<Exit> {
    let yes = AcceptingTerminal { session };
    let session = Session {
        terminal: &yes,
        ..*session
    };
    session.follow(agent, thread, run).await
}

fn snapshots(session: &Session<'_>) -> SnapshotStore {
    SnapshotStore::under(&session.app.settings.home)
}

async fn at(prefix: &str, step: u32, output: &Path, session: &Session<'_>) -> anyhow::Result<Exit> {
    let bytes = workbook_at(prefix, step, session).await?;
    write_named_file(output, &bytes, Access::Private)
        .with_context(|| format!("{} cannot be written", output.display()))?;
    session.terminal.line(&format!(
        "{} is the workbook after step {step}",
        output.display()
    ));
    Ok(Exit::Done)
}

async fn workbook_at(prefix: &str, step: u32, session: &Session<'_>) -> anyhow::Result<Vec<u8>> {
    let (thread, row) = session.app.find(prefix).await?;
    if row.graph != NAME {
        bail!(
            "{} is a thread of `{}`, not of a workbook",
            row.thread,
            row.graph
        );
    }
    let state: GraphState = state_of(&*thread).await?;
    Ok(output::at_step(
        &snapshots(session),
        &row.thread,
        &state,
        step,
    )?)
}

/// Default folder for the results.
const OUTPUT: &str = "out";

/// Maximum size of a recipe, in bytes.
const RECIPE_BYTES_MAX: u64 = 16 << 20;

/// A terminal that accepts every change set.
struct AcceptingTerminal<'a> {
    session: &'a Session<'a>,
}

impl Terminal for AcceptingTerminal<'_> {
    fn line(&self, text: &str) {
        self.session.terminal.line(text);
    }

    fn line_of(&self, parts: &[(Face, &str)]) {
        self.session.terminal.line_of(parts);
    }

    fn verbatim(&self, text: &str) {
        self.session.terminal.verbatim(text);
    }

    fn markdown(&self, text: &str) {
        self.session.terminal.markdown(text);
    }

    fn label(&self, text: &str) {
        self.session.terminal.label(text);
    }

    fn style(&self) -> Style {
        self.session.terminal.style()
    }

    fn piece(&self, text: &str) {
        self.session.terminal.piece(text);
    }

    fn pieces_end(&self) {
        self.session.terminal.pieces_end();
    }

    fn aside(&self, text: &str) {
        self.session.terminal.aside(text);
    }

    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        // Other questions, such as whether to spend more, go to the person.
        if !prompt.contains("[y/n") {
            return self.session.terminal.ask(prompt);
        }
        self.session.tell(&format!("{prompt}y"));
        Ok(Some("y".to_owned()))
    }

    fn waiting(&self, what: &str) -> Waiting {
        self.session.terminal.waiting(what)
    }

    fn is_watched(&self) -> bool {
        self.session.terminal.is_watched()
    }

    fn is_followed(&self) -> bool {
        self.session.terminal.is_followed()
    }
}
