//! `archie ask` and `archie build-context`: one question about notes, or the context of them, without an interview.

use std::path::{Path, PathBuf};

use anyhow::bail;
use archie_agent::Exit;
use archie_agent::printable::one_line;
use archie_analyze::inputs::{self, Read};
use archie_analyze::inquiry::{InquiryStateUpdate, NAME, context_file};
use archie_analyze::memory::Memory;

use crate::session::Session;

/// What to ask.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AskArgs {
    /// Question
    #[arg(required = true)]
    pub question: Vec<String>,
    /// Folder with notes (.txt, .md, .pdf) to answer from
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inputs: Option<PathBuf>,
    /// Also read subfolders
    #[arg(long)]
    pub recursive: bool,
    /// JSON file with known entities and relationships
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub memory_file: Option<PathBuf>,
    /// Print the answer as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// What to write.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct BuildContextArgs {
    /// Folder with notes (.txt, .md, .pdf); the context is written into it
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inputs: PathBuf,
    /// Name of the context; the file is NAME_context.md
    #[arg(long)]
    pub name: String,
    /// Also read subfolders
    #[arg(long)]
    pub recursive: bool,
    /// JSON file to merge entities and relationships into
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub memory_file: Option<PathBuf>,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// Runs `archie ask`.
pub async fn handle_ask_command(args: &AskArgs, session: &Session<'_>) -> anyhow::Result<Exit> {
    let question = args.question.join(" ");
    if question.trim().is_empty() {
        bail!("the question is empty; usage: archie ask \"…\"");
    }
    let read = match &args.inputs {
        Some(folder) => inputs::read_files(folder, args.recursive)?,
        None => Read::default(),
    };
    let start = start(read, args.memory_file.as_deref(), session).await?;
    let start = start.question(question.clone());
    begin(start, &question, session).await
}

/// Runs `archie build-context`.
pub async fn handle_build_context_command(
    args: &BuildContextArgs,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let file = context_file(&args.name)?;
    let mut read = inputs::read_files(&args.inputs, args.recursive)?;
    // What an earlier run wrote is not a source.
    let own = file.trim_end_matches("md").to_owned();
    let is_own = |name: &String| name.starts_with(&own) && name.ends_with(".md");
    read.contents.retain(|name, _| !is_own(name));
    read.inputs.hashes.retain(|name, _| !is_own(name));
    if read.contents.is_empty() {
        bail!(
            "there are no notes in `{}`; a context needs .txt, .md or .pdf files",
            args.inputs.display()
        );
    }
    let names: Vec<_> = read.contents.keys().map(|name| one_line(name)).collect();
    session.tell(&format!("read {}", names.join(", ")));
    let start = start(read, args.memory_file.as_deref(), session).await?;
    let start = start.context_name(args.name.clone());
    begin(start, &format!("context of {}", args.name), session).await
}

async fn start(
    read: Read,
    memory_file: Option<&Path>,
    session: &Session<'_>,
) -> anyhow::Result<InquiryStateUpdate> {
    let model = session.app.ready_model().await?;
    let mut update = InquiryStateUpdate::default()
        .file_contents(read.contents)
        .inputs(read.inputs)
        .model_name(model);
    if let Some(path) = memory_file {
        let absolute = std::path::absolute(path)?;
        update = update
            .memory(Memory::read(path)?)
            .memory_file(absolute.display().to_string());
    }
    Ok(update)
}

async fn begin(
    start: InquiryStateUpdate,
    title: &str,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let agent = session.app.agent(NAME)?;
    let thread = session.new_thread(agent, title)?;
    session
        .begin(agent, &*thread, serde_json::to_value(start)?)
        .await
}
