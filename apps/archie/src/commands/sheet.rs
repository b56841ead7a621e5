//! The command: reads the workbook, runs the graph, shows what changed, writes what was accepted.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value as Json;
use superstep::ThreadId;

use super::NAME;
use super::book::mirror::Form;
use super::keep::Keep;
use super::manner::Yes;
use super::output;
use super::recipe::{Recipe, open_posts};
use super::sandbox::{Kind, Limits};
use super::service::{self, Order};
use super::state::{Actions, GraphState, InformerSpec};
use crate::agents::{AnyThread, state_of};
use crate::exit::Exit;
use crate::printable::one_line;
use crate::talk::Talk;
use crate::user_folder::{Access, read_named_file, resolve_named, write_named_file};

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
    pub informer_form: Form,
    /// Maximum number of planner calls
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub max_steps: u32,
    /// How the planner acts: tool calls, or text for models without them
    #[arg(long, value_enum, default_value_t)]
    pub actions: Actions,
    /// What all runs of code have in common.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What all runs of code have in common.
#[derive(Debug, Clone, clap::Args)]
pub struct CommonArgs {
    /// Folder for the results
    #[arg(long, default_value = OUTPUT, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output_dir: PathBuf,
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
    /// Whether only a result goes to stdout.
    pub fn json(&self) -> bool {
        match &self.other {
            None => self.common.json,
            Some(SheetCommand::Replay { common, .. } | SheetCommand::OpenPosts { common, .. }) => {
                common.json
            }
            Some(SheetCommand::At { .. }) => false,
        }
    }
}

/// `sheet` from its arguments to its end.
pub async fn handle_sheet_command(args: &SheetArgs, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    match &args.other {
        None => analyse(args, talk).await,
        Some(SheetCommand::Replay { recipe, on, common }) => {
            let bytes = read_named_file(recipe, RECIPE_BYTES_MAX)?;
            let text = String::from_utf8(bytes)
                .with_context(|| format!("{} is not text", recipe.display()))?;
            let read = Recipe::read(&text)?;
            if !read.approved {
                bail!("the changes of this recipe's run were not accepted; accept them first");
            }
            play(read, on, common, talk).await
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
            play(open_posts(as_of), file, common, talk).await
        }
        Some(SheetCommand::At {
            thread,
            step,
            output,
        }) => at(thread, *step, output, talk).await,
    }
}

async fn analyse(args: &SheetArgs, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    let source = match (&args.file, &args.from) {
        (Some(file), _) => Source::File(file.clone()),
        (None, Some(from)) => step_of(from, talk).await?,
        (None, None) => {
            bail!("no workbook was given; write `archie sheet FILE --instruction \"…\"`")
        }
    };
    let model = talk.home.settings.model()?.to_owned();
    let instruction = match &args.instruction {
        Some(instruction) => instruction.clone(),
        None => talk
            .say
            .ask("What is to be done with it? ")?
            .unwrap_or_default(),
    };
    if instruction.trim().is_empty() {
        bail!("nothing to do was given; say it with --instruction \"…\"");
    }
    let informer = InformerSpec {
        model: model.clone(),
        form: args.informer_form,
    };
    let order = Order {
        instruction,
        context: args.context.clone(),
        model,
        actions: args.actions,
        informer: args.with_informer.then_some(informer),
        max_steps: args.max_steps,
        ..order(&args.common)
    };
    begin(order, source, &args.common, talk).await
}

async fn play(
    recipe: Recipe,
    file: &Path,
    common: &CommonArgs,
    talk: &Talk<'_>,
) -> anyhow::Result<Exit> {
    let steps = u32::try_from(recipe.steps.len())?;
    let order = Order {
        instruction: recipe.instruction.clone(),
        max_steps: steps + 1,
        recipe: Some(recipe),
        ..order(common)
    };
    begin(order, Source::File(file.to_owned()), common, talk).await
}

fn order(common: &CommonArgs) -> Order {
    Order {
        instruction: String::new(),
        context: String::new(),
        output_dir: absolute(&common.output_dir),
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

/// So that `resume` from another folder finds it, and that it means the same then: what the person named is known by where it leads
/// now. The folder that is taken by default was named by nobody, so that a link in its place is refused when it is written to.
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
    order: Order,
    source: Source,
    common: &CommonArgs,
    talk: &Talk<'_>,
) -> anyhow::Result<Exit> {
    let agent = talk.home.agent(NAME)?;
    let thread = talk.new_thread(&**agent, &order.instruction)?;
    let id = ThreadId::new(&thread.id())?;
    let opened = match &source {
        Source::File(file) => service::open(file, &keep(talk), &id)?,
        Source::Step { name, bytes } => service::open_bytes(name, bytes, &keep(talk), &id)?,
    };
    if common.unsandboxed {
        talk.say
            .aside("without a sandbox: the code of the model can do whatever you can");
    }
    talk.tell(&format!(
        "thread {id}  read {}",
        one_line(&opened.handle.path)
    ));
    opened
        .sheets
        .iter()
        .for_each(|line| talk.tell(&format!("  {}", one_line(line))));
    opened
        .seen
        .remarks()
        .iter()
        .for_each(|remark| talk.tell(&format!("  {}", one_line(remark))));
    let start = serde_json::to_value(service::initial_state(&order, &opened, &id))?;
    match common.yes {
        false => talk.begin(&**agent, &*thread, start).await,
        true => accept_all(talk, &**agent, &*thread, start).await,
    }
}

/// Where a workbook comes from.
enum Source {
    File(PathBuf),
    /// A step of another thread.
    Step {
        name: String,
        bytes: Vec<u8>,
    },
}

async fn step_of(from: &str, talk: &Talk<'_>) -> anyhow::Result<Source> {
    let (thread, step) = from.split_once('@').context("write THREAD@STEP")?;
    let step = step.parse().context("the step is a number")?;
    let bytes = workbook_at(thread, step, talk).await?;
    Ok(Source::Step {
        name: from.to_owned(),
        bytes,
    })
}

/// Answers every question with yes.
async fn accept_all(
    talk: &Talk<'_>,
    agent: &dyn crate::agents::AnyAgent,
    thread: &dyn AnyThread,
    start: Json,
) -> anyhow::Result<Exit> {
    let yes = Yes { talk };
    let talk = Talk { say: &yes, ..*talk };
    talk.begin(agent, thread, start).await
}

fn keep(talk: &Talk<'_>) -> Keep {
    Keep::under(&talk.home.settings.home)
}

async fn at(prefix: &str, step: u32, output: &Path, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    let bytes = workbook_at(prefix, step, talk).await?;
    write_named_file(output, &bytes, Access::Private)
        .with_context(|| format!("{} cannot be written", output.display()))?;
    talk.say.line(&format!(
        "{} is the workbook after step {step}",
        output.display()
    ));
    Ok(Exit::Done)
}

async fn workbook_at(prefix: &str, step: u32, talk: &Talk<'_>) -> anyhow::Result<Vec<u8>> {
    let (thread, row) = talk.home.find(prefix).await?;
    if row.graph != NAME {
        bail!(
            "{} is a thread of `{}`, not of a workbook",
            row.thread,
            row.graph
        );
    }
    let state: GraphState = state_of(&*thread).await?;
    Ok(output::at_step(&keep(talk), &row.thread, &state, step)?)
}

/// Where the results go by default.
const OUTPUT: &str = "out";

/// How large a recipe may be.
const RECIPE_BYTES_MAX: u64 = 16 << 20;
