//! What can be typed, in the terminal and in the shell alike.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::agents::analyze::command::AnalyzeArgs;
use crate::agents::atris::api_command::ApiArgs;
use crate::agents::atris::command::AtrisArgs;
use crate::agents::docs::command::DocsArgs;
use crate::agents::email_assistant::command::MailArgs;
use crate::agents::sheet::command::SheetArgs;
use crate::cli::settings::Given;

/// Durable agents: they survive kill -9, show cost and evidence, and run offline.
///
/// Without a command this is a shell; type `help` there.
#[derive(Debug, Parser)]
#[command(name = "archie", version, max_term_width = 100)]
pub struct Args {
    /// The model: PROVIDER:NAME (openai, openai_responses, anthropic, gemini, ollama) or script:FILE.
    #[arg(long, global = true, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where threads are kept: sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "STORE")]
    pub store: Option<String>,
    /// Who drives threads: local, or restate:URL for the workers of a cluster.
    #[arg(long, global = true, value_name = "ENGINE")]
    pub engine: Option<String>,
    /// What a thread may spend before you are asked: dollars (0.50), tokens (20000t) or calls (30c).
    #[arg(long, global = true, value_name = "BUDGET")]
    pub budget: Option<String>,
    /// What to do; a shell if nothing is given.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// What was given of the settings.
    pub fn given(&self) -> Given {
        Given {
            model: self.model.clone(),
            store: self.store.clone(),
            engine: self.engine.clone(),
            budget: self.budget.clone(),
        }
    }
}

/// A line of the shell.
#[derive(Debug, Parser)]
#[command(name = "archie", no_binary_name = true, disable_help_flag = true)]
pub struct Line {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Decide something over a folder of notes: an analyst interviews you until you say SOLUTION APPROVED or DONE.
    Analyze(AnalyzeArgs),
    /// Document a folder: agents describe it side by side, refine what they wrote, and every name in it is looked up.
    Docs(DocsArgs),
    /// Work on a workbook: a planner and a sandboxed Python do what you ask for, and you see every changed cell before it is saved.
    Sheet(Box<SheetArgs>),
    /// Ask an API in plain words: what reads is answered, what changes something asks you first.
    Atris(AtrisArgs),
    /// Add, list, show or remove the APIs that `atris` can ask.
    Api(ApiArgs),
    /// Sort mail, draft answers, learn what you prefer; nothing is sent that you have not seen.
    Mail(MailArgs),
    /// Start a thread of any agent, also of your own, with its input as JSON.
    Run(RunArgs),
    /// Go on with a thread wherever it stands: at a question, after a crash, after a failure.
    Resume(ThreadArgs),
    /// List threads, newest first.
    Threads(ThreadsArgs),
    /// Show a thread: where it stands, what it asks, its state.
    Show(ThreadArgs),
    /// Show what happened on a thread, entry by entry.
    History(ThreadArgs),
    /// Copy a thread up to an entry, to try another answer or model; the original is not touched.
    Fork(ForkArgs),
    /// Compare the states of two threads, or of two entries of one.
    Diff(DiffArgs),
    /// List open questions, show one in full, or answer it.
    Inbox(InboxArgs),
    /// Show a thread as a tree, with times and costs, or send it to a trace backend.
    Trace(TraceArgs),
    /// Draw the graph of an agent.
    Graph(GraphArgs),
    /// Write a thread with all its history into a file.
    Export(FileArgs),
    /// Read a thread from a file that `export` wrote.
    Import(ImportArgs),
    /// Delete a thread for good.
    Delete(DeleteArgs),
    /// Open every parked thread with this program, and say which would not go on.
    Check(JsonArgs),
    /// Run a scripted scenario of every agent, offline, and say what passed.
    Demo(JsonArgs),
    /// Say which model answers, where threads are kept, what is missing and how to mend it.
    Doctor(DoctorArgs),
    /// Make a small project with an agent of your own, whose program has ours beside it.
    New(NewArgs),
    /// Be a process that a Restate cluster calls to run threads.
    Worker(WorkerArgs),
    /// Copy everything that is kept into a file, while others go on.
    Backup(BackupArgs),
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// A thread.
#[derive(Debug, Clone, clap::Args)]
pub struct ThreadArgs {
    /// Its id, or as much of it as only it has.
    pub thread: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which trace, and where to.
#[derive(Debug, Clone, clap::Args)]
pub struct TraceArgs {
    /// Of which thread.
    #[command(flatten)]
    pub thread: ThreadArgs,
    /// Send it to this OTLP address over HTTP, such as http://127.0.0.1:6006 for Phoenix, instead of showing it. What people, models
    /// and tools said is not sent. OTEL_EXPORTER_OTLP_HEADERS has the headers, such as a key.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// The project that the backend files it under.
    #[arg(long, requires = "otlp", default_value = "archie")]
    pub project: String,
}

/// What to start.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// The agent.
    pub agent: String,
    /// Its input, an object of fields of its state.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub input: String,
    /// What lists call the thread.
    #[arg(long, default_value = "")]
    pub title: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to make.
#[derive(Debug, Clone, clap::Args)]
pub struct NewArgs {
    /// The name of the agent and its folder: small letters, digits and _.
    pub name: String,
    /// Use the crates of this checkout and not those that are published.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub from: Option<PathBuf>,
}

/// Where to listen.
#[derive(Debug, Clone, clap::Args)]
pub struct WorkerArgs {
    /// Where Restate calls; several workers of a machine may share it.
    #[arg(long, default_value = "127.0.0.1:9080", value_name = "ADDR")]
    pub listen: std::net::SocketAddr,
    /// Where /health, /ready and /metrics are told.
    #[arg(long, value_name = "ADDR")]
    pub operations: Option<std::net::SocketAddr>,
    /// Refuse calls that are not signed with this key of the cluster (publickeyv1_…).
    #[arg(long, value_name = "KEY")]
    pub identity_key: Option<String>,
    /// Listen on other addresses than loopback without an identity key.
    #[arg(long, conflicts_with = "identity_key")]
    pub insecure_no_identity_key: bool,
    /// Tell the cluster with this admin address about the worker.
    #[arg(long, value_name = "URL")]
    pub register: Option<String>,
}

/// Where to.
#[derive(Debug, Clone, clap::Args)]
pub struct BackupArgs {
    /// The file; it must not exist.
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which threads.
#[derive(Debug, Clone, clap::Args)]
pub struct ThreadsArgs {
    /// Only of this agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Only with this status: idle, running, paused, failed, cancelled.
    #[arg(long)]
    pub status: Option<String>,
    /// How many.
    #[arg(long, default_value_t = 20)]
    pub limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to fork.
#[derive(Debug, Clone, clap::Args)]
pub struct ForkArgs {
    /// Its id, or as much of it as only it has.
    pub thread: String,
    /// At this entry; `history` lists them. Else at the newest.
    #[arg(long, value_name = "ENTRY")]
    pub at: Option<u64>,
    /// Let the copy go on with another model.
    #[arg(long = "with-model", value_name = "MODEL")]
    pub with_model: Option<String>,
    /// Answer the question that the copy stands at.
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to compare.
#[derive(Debug, Clone, clap::Args)]
pub struct DiffArgs {
    /// A thread, or THREAD@ENTRY.
    pub one: String,
    /// Another, or another entry.
    pub other: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with questions.
#[derive(Debug, Clone, clap::Args)]
pub struct InboxArgs {
    /// Item id or unique prefix of at least 6 characters.
    #[arg(value_name = "ID")]
    pub item: Option<String>,
    /// Answer: accept, edit JSON, response TEXT, ignore, text or JSON.
    #[arg(requires = "item")]
    pub answer: Vec<String>,
    /// Answer only if the item has this digest.
    #[arg(long, value_name = "DIGEST", requires = "answer")]
    pub digest: Option<String>,
    /// List answered items too, with who answered what and when.
    #[arg(long)]
    pub all: bool,
    /// Number of items to list.
    #[arg(long, default_value_t = 50)]
    pub limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to draw.
#[derive(Debug, Clone, clap::Args)]
pub struct GraphArgs {
    /// The agent.
    pub agent: String,
    /// As Mermaid.
    #[arg(long)]
    pub mermaid: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A thread and a file.
#[derive(Debug, Clone, clap::Args)]
pub struct FileArgs {
    /// Its id, or as much of it as only it has.
    pub thread: String,
    /// The file.
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
}

/// A file.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// The file.
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
}

/// What to delete.
#[derive(Debug, Clone, clap::Args)]
pub struct DeleteArgs {
    /// Its id, or as much of it as only it has.
    pub thread: String,
    /// Do not ask first.
    #[arg(long)]
    pub yes: bool,
}

/// How to print.
#[derive(Debug, Clone, clap::Args)]
pub struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to look at.
#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// Write all of it into a file for a bug report, without secrets.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl Command {
    /// Whether it needs the store.
    pub fn needs_home(&self) -> bool {
        !matches!(
            self,
            Self::Completions { .. } | Self::Demo(_) | Self::New(_) | Self::Worker(_)
        )
    }
}
