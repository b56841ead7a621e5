//! Command-line arguments, shared by the terminal and the shell.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::cli::interval::age;
use crate::cli::settings::SettingOptions;
use crate::commands::analyze::AnalyzeArgs;
use crate::commands::api::ApiArgs;
use crate::commands::atris::AtrisArgs;
use crate::commands::audit::AuditArgs;
use crate::commands::docs::DocsArgs;
use crate::commands::encryption::EncryptionArgs;
use crate::commands::inquiry::{AskArgs, BuildContextArgs};
use crate::commands::keys::KeysArgs;
use crate::commands::mail::MailArgs;
use crate::commands::mcp::McpArgs;
use crate::commands::setup::SetupArgs;
use crate::commands::sheet::SheetArgs;

/// Durable agents that survive kill -9 and show their cost and evidence.
///
/// Without a command, archie starts a shell; type `help` there.
#[derive(Debug, Parser)]
#[command(name = "archie", version, max_term_width = 80)]
pub struct Args {
    /// Model: PROVIDER:NAME (openai, openai_responses, anthropic, gemini, ollama) or script:FILE
    #[arg(long, global = true, value_name = "MODEL")]
    pub model: Option<String>,
    /// Database of the threads: sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "STORE")]
    pub store: Option<String>,
    /// What runs threads: local, or restate:URL for a cluster
    #[arg(long, global = true, value_name = "ENGINE")]
    pub engine: Option<String>,
    /// Ask before a thread spends more: dollars (0.50), tokens (20000t) or calls (30c)
    #[arg(long, global = true, value_name = "BUDGET")]
    pub budget: Option<String>,
    /// Command to run. Default: start a shell
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// Returns the settings that the command line sets.
    pub fn given(&self) -> SettingOptions {
        SettingOptions {
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
pub struct ShellLine {
    /// Command to run
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Let an analyst interview you about a folder of notes
    Analyze(AnalyzeArgs),
    /// Ask one question, about a folder of notes or without
    Ask(AskArgs),
    /// Write down what a newcomer must know about a folder of notes
    BuildContext(BuildContextArgs),
    /// Document a folder and check every name in the text
    Docs(DocsArgs),
    /// Work on a spreadsheet and review every changed cell
    Sheet(Box<SheetArgs>),
    /// Ask an API in plain words; calls that change data ask first
    Atris(AtrisArgs),
    /// Manage the APIs that `atris` can ask
    Api(ApiArgs),
    /// Manage MCP servers whose tools agents may call
    Mcp(McpArgs),
    /// Triage mail and draft replies; send nothing unseen
    Mail(MailArgs),
    /// Start a thread of any agent with JSON input
    Run(RunArgs),
    /// Resume a thread after a question, a crash or a failure
    Resume(ThreadArgs),
    /// List threads, newest first.
    Threads(ThreadsArgs),
    /// Show a thread's status, open questions and state
    Show(ThreadArgs),
    /// Show a thread's history, entry by entry
    History(ThreadArgs),
    /// Copy a thread at an entry to try another answer or model
    Fork(ForkArgs),
    /// Take back the last answer if nothing has left because of it
    Undo(ThreadArgs),
    /// Compare the states of two threads or entries
    Diff(DiffArgs),
    /// Read and answer open questions
    Inbox(InboxArgs),
    /// Show a thread's trace with times and costs, or export it
    Trace(TraceArgs),
    /// Draw the graph of an agent.
    Graph(GraphArgs),
    /// Export a thread with its history to a file
    Export(FileArgs),
    /// Import a thread from a file written by `export`
    Import(ImportArgs),
    /// Delete threads permanently
    Delete(DeleteArgs),
    /// Check which paused threads this version cannot resume
    Check(JsonArgs),
    /// Run a scripted scenario of every agent without a model
    Demo(DemoArgs),
    /// Find a model, test it and save the choice
    Setup(SetupArgs),
    /// List the models that are available here, with their prices
    Models(JsonArgs),
    /// Diagnose the model, the database and missing programs
    Doctor(DoctorArgs),
    /// Score an agent with your model on the cases that come with it
    Eval(EvalArgs),
    /// Play a test case without a model and compare where it ends
    Test(TestArgs),
    /// Create a project with an agent of your own
    New(NewArgs),
    /// Serve the agents over HTTP, for LangGraph clients and chat pages
    Serve(ServeArgs),
    /// Open Studio in a browser: inbox, threads, traces and forks
    Studio(StudioArgs),
    /// List, verify or prune the audit log of a server
    Audit(AuditArgs),
    /// Create, list, rotate or revoke API keys of `serve --auth`
    Keys(KeysArgs),
    /// Create and rotate the keys that encrypt the database
    Encryption(EncryptionArgs),
    /// Erase everything of a tenant of `serve --auth`
    Erase(EraseArgs),
    /// Show how many bytes threads take, largest first
    Size(SizeArgs),
    /// Run a worker for a Restate cluster
    Worker(WorkerArgs),
    /// Back up the database to a file while it is in use
    Backup(BackupArgs),
    /// Print shell completions
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
}

/// A thread.
#[derive(Debug, Clone, clap::Args)]
pub struct ThreadArgs {
    /// Thread id or unique prefix
    pub thread: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which trace, and where to.
#[derive(Debug, Clone, clap::Args)]
pub struct TraceArgs {
    /// The thread.
    #[command(flatten)]
    pub thread: ThreadArgs,
    /// Export the trace over OTLP/HTTP, for instance to http://127.0.0.1:6006
    ///
    /// Messages of people, models and tools are not exported. Set headers such as a key with OTEL_EXPORTER_OTLP_HEADERS.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Project name in the trace backend
    #[arg(long, requires = "otlp", default_value = "archie")]
    pub project: String,
}

/// What to start.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// Agent
    pub agent: String,
    /// Input: a JSON object with fields of the agent's state
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub input: String,
    /// Title of the thread in lists
    #[arg(long, default_value = "")]
    pub title: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to make.
#[derive(Debug, Clone, clap::Args)]
pub struct NewArgs {
    /// Name of the agent and its folder: lowercase letters, digits and _
    pub name: String,
    /// Use the crates of this checkout instead of published ones
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub from: Option<PathBuf>,
    /// Create a program with the Superstep library, without Archie
    // Before the options that every command has.
    #[arg(long, display_order = 0)]
    pub lib: bool,
}

/// Where to serve the agents.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArgs {
    /// Address to listen at; others than loopback need --auth
    #[arg(long, default_value = "127.0.0.1:2024", value_name = "ADDR")]
    pub listen: std::net::SocketAddr,
    /// Origin of a web page that may call the server, besides local ones
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Name by which clients reach the server, besides localhost
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,
    /// Policy file: who may call the server, and what for (JSON)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub auth: Option<PathBuf>,
    /// Highest number of runs at once
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub concurrent_runs: usize,
    /// Model that callers may choose for a run, besides --model
    #[arg(long, value_name = "MODEL")]
    pub allow_model: Vec<String>,
    /// Folder for the files of threads. Default: `files` in the home folder
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    pub files: Option<std::path::PathBuf>,
    /// Host that webhooks may go to although it is private
    #[arg(long, value_name = "HOST[:PORT]")]
    pub webhook_host: Vec<superstep_server::AllowedHost>,
    /// File with the secrets that sign webhooks, one per line
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub webhook_secret_file: Option<std::path::PathBuf>,
    /// Refuse webhooks without TLS
    #[arg(long)]
    pub webhook_https: bool,
    /// Print a line of JSON for each request
    #[arg(long)]
    pub access_log: bool,
    /// Record changes, answers and tool calls in the audit log
    #[arg(long)]
    pub audit: bool,
    /// File with the secret under which audit entries are hashed
    #[arg(long, value_name = "FILE", requires = "audit", value_hint = clap::ValueHint::FilePath)]
    pub audit_key_file: Option<std::path::PathBuf>,
    /// Highest number of a tenant's requests per second
    #[arg(long, value_name = "N")]
    pub tenant_requests: Option<u32>,
    /// Highest number of a tenant's new runs per minute
    #[arg(long, value_name = "N")]
    pub tenant_runs: Option<u32>,
    /// Highest number of a tenant's open requests
    #[arg(long, value_name = "N")]
    pub tenant_streams: Option<u32>,
    /// Highest number of a tenant's active runs
    #[arg(long, value_name = "N")]
    pub tenant_active: Option<u32>,
    /// Highest number of a tenant's runs at once
    #[arg(long, value_name = "N")]
    pub tenant_concurrent: Option<u32>,
    /// File that says how long threads are kept (JSON)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub retention: Option<PathBuf>,
    /// File with the keys that encrypt the database
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub encryption_key_file: Option<PathBuf>,
    /// Wait until the server that executes the runs has stopped
    #[arg(long)]
    pub standby: bool,
}

/// The server that Studio is a page of.
#[derive(Debug, Clone, clap::Args)]
pub struct StudioArgs {
    /// How to serve, if no server listens yet.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Print the address without opening a browser
    #[arg(long)]
    pub no_browser: bool,
}

/// Whose data.
#[derive(Debug, Clone, clap::Args)]
pub struct EraseArgs {
    /// Tenant to erase
    pub tenant: String,
    /// Erase without asking
    #[arg(long)]
    pub yes: bool,
    /// File with the secret of `serve --audit-key-file`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct SizeArgs {
    /// What a line sums up
    #[arg(long, value_enum, default_value_t = SizeBy::Graph)]
    pub by: SizeBy,
    /// Number of lines, up to 1,000
    #[arg(long, default_value_t = 20)]
    pub limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What a line of `size` sums up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SizeBy {
    /// All threads of a tenant
    Tenant,
    /// Threads of a tenant with the same graph
    Graph,
    /// One thread
    Thread,
}

/// Where to listen.
#[derive(Debug, Clone, clap::Args)]
pub struct WorkerArgs {
    /// Address for Restate's calls; workers of one machine may share it
    #[arg(long, default_value = "127.0.0.1:9080", value_name = "ADDR")]
    pub listen: std::net::SocketAddr,
    /// Address for /health, /ready and /metrics
    #[arg(long, value_name = "ADDR")]
    pub operations: Option<std::net::SocketAddr>,
    /// Refuse calls not signed with this key of the cluster (publickeyv1_…)
    #[arg(long, value_name = "KEY")]
    pub identity_key: Option<String>,
    /// Allow addresses other than loopback without an identity key
    #[arg(long, conflicts_with = "identity_key")]
    pub insecure_no_identity_key: bool,
    /// Model that callers of `serve` may choose for a run, besides --model
    #[arg(long, value_name = "MODEL")]
    pub allow_model: Vec<String>,
    /// Register the worker with the cluster at this admin address
    #[arg(long, value_name = "URL")]
    pub register: Option<String>,
    /// File with the keys that encrypt the database
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub encryption_key_file: Option<PathBuf>,
}

/// Where to.
#[derive(Debug, Clone, clap::Args)]
pub struct BackupArgs {
    /// File to write; must not exist
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which threads.
#[derive(Debug, Clone, clap::Args)]
pub struct ThreadsArgs {
    /// List only threads of this agent
    #[arg(long)]
    pub agent: Option<String>,
    /// List only this status: idle, running, paused, failed, cancelled
    #[arg(long)]
    pub status: Option<String>,
    /// Number of threads to list
    #[arg(long, default_value_t = 20)]
    pub limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to fork.
#[derive(Debug, Clone, clap::Args)]
pub struct ForkArgs {
    /// Thread id or unique prefix
    pub thread: String,
    /// Entry to copy up to, see `history`. Default: the newest
    #[arg(long, value_name = "ENTRY")]
    pub at: Option<u64>,
    /// Resume the copy with another model
    #[arg(long = "with-model", value_name = "MODEL")]
    pub with_model: Option<String>,
    /// Answer the open question of the copy
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to compare.
#[derive(Debug, Clone, clap::Args)]
pub struct DiffArgs {
    /// Thread, or THREAD@ENTRY
    pub one: String,
    /// Thread or entry to compare with
    pub other: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with questions.
#[derive(Debug, Clone, clap::Args)]
pub struct InboxArgs {
    /// Item id or unique prefix of at least 6 characters
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
    /// Print the list instead of opening the full-screen view.
    #[arg(long)]
    pub plain: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to draw.
#[derive(Debug, Clone, clap::Args)]
pub struct GraphArgs {
    /// Agent
    pub agent: String,
    /// Print Mermaid
    #[arg(long)]
    pub mermaid: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A thread and a file.
#[derive(Debug, Clone, clap::Args)]
pub struct FileArgs {
    /// Thread id or unique prefix
    pub thread: String,
    /// File
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
}

/// A file.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// File
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
}

/// What to delete.
#[derive(Debug, Clone, clap::Args)]
pub struct DeleteArgs {
    /// Thread ids or unique prefixes
    #[arg(value_name = "THREAD", required_unless_present_any = ["agent", "status", "older_than"])]
    pub threads: Vec<String>,
    /// Delete every thread of this agent
    #[arg(long, conflicts_with = "threads")]
    pub agent: Option<String>,
    /// Delete every thread with this status, see `threads`
    #[arg(long, conflicts_with = "threads")]
    pub status: Option<String>,
    /// Delete every thread that did not change for this time, such as 30d
    #[arg(long, value_name = "TIME", value_parser = age, conflicts_with = "threads")]
    pub older_than: Option<Duration>,
    /// Do not ask for confirmation
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

/// What to do after the scenarios.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Serve Studio with the threads of the demo. Default: at a terminal
    #[arg(long, conflicts_with = "json")]
    pub studio: bool,
    /// Do not pause between agents. Default: pause at a terminal
    #[arg(long)]
    pub no_pause: bool,
}

/// What to look at.
#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// Describe every environment variable, set or not
    #[arg(long)]
    pub verbose: bool,
    /// Write everything to a file for a bug report, without secrets
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to evaluate.
#[derive(Debug, Clone, clap::Args)]
pub struct EvalArgs {
    /// Agent
    #[arg(value_name = "AGENT")]
    pub agent: EvalAgent,
    /// Number of cases, taken from all over the set. Default: all
    #[arg(long, value_name = "N")]
    pub cases: Option<usize>,
    /// Score one plain prompt per case instead of the agent
    #[arg(long)]
    pub plain: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which test cases.
#[derive(Debug, Clone, clap::Args)]
pub struct TestArgs {
    /// Test cases, as Studio makes them of a thread
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// An agent with a set of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EvalAgent {
    /// Interviews about 20 decisions, over folders of notes with known facts
    Analyze,
    /// 30 tasks on ten workbooks
    Sheet,
    /// Five small repositories with known symbols, relations and entry points
    Docs,
    /// 120 questions about five APIs; without a model, the rules alone
    Atris,
    /// Triage of 100 mails in three languages, 18 of them fraud
    Mail,
}

impl Command {
    /// Returns whether the command runs with an open store. The others open what they need themselves.
    pub fn needs_home(&self) -> bool {
        !matches!(
            self,
            Self::Audit(_)
                | Self::Completions { .. }
                | Self::Demo(_)
                | Self::Encryption(_)
                | Self::Keys(_)
                | Self::New(_)
                | Self::Serve(_)
                | Self::Studio(_)
                | Self::Test(_)
                | Self::Worker(_)
        )
    }

    /// Returns whether the command changes the settings file.
    pub fn changes_settings(&self) -> bool {
        match self {
            Self::Setup(_) => true,
            Self::Mcp(args) => args.command.changes_settings(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    /// Returns what is wrong with the help of a command and its subcommands.
    fn faults_of(command: &mut clap::Command) -> Vec<String> {
        let name = command.get_name().to_owned();
        let about = command.get_about().map(ToString::to_string);
        let mut faults = Vec::new();
        if about.is_some_and(|about| about.chars().count() > 72) {
            faults.push(format!("{name}: the summary is longer than 72 characters"));
        }
        let long = command.render_long_help().to_string();
        let short = command.render_help().to_string();
        for line in short.lines().chain(long.lines()) {
            if line.chars().count() > 80 {
                faults.push(format!("{name}: `{line}` is wider than 80 columns"));
            }
        }
        for below in command.get_subcommands_mut() {
            faults.extend(faults_of(below));
        }
        faults
    }

    #[test]
    fn help_fits_a_terminal_of_eighty_columns() {
        let mut command = Args::command();
        command.build();
        let faults = faults_of(&mut command);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn a_long_summary_is_found() {
        let mut command = clap::Command::new("x").about("a ".repeat(40));
        assert_eq!(faults_of(&mut command).len(), 1);
    }
}
