//! What can be typed, in the terminal and in the shell alike.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::agents::analyze::command::AnalyzeArgs;
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
    /// List every open question of every agent, answer one, or see who answered what.
    Inbox(InboxArgs),
    /// Show a thread as a tree, with times and costs.
    Trace(ThreadArgs),
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
    /// Let the copy go on with another model (of an analysis).
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
    /// Answer the question of this number or id.
    #[arg(value_name = "QUESTION")]
    pub question: Option<String>,
    /// With this: text, or JSON for a question that wants it.
    #[arg(requires = "question")]
    pub answer: Option<String>,
    /// Show those that were answered, too: who said what, and when.
    #[arg(long)]
    pub all: bool,
    /// How many.
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
        !matches!(self, Self::Completions { .. } | Self::Demo(_))
    }
}
