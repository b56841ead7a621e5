//! Demo of `docs`: two agents document a small shop. One names a file that does not exist, is asked about it, and corrects it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use archie_agent::{Exit, Terminal, state_of};
use archie_docs::state::DocsState;
use superstep_llm::Script;

use super::{Person, only_thread, settings};
use crate::agents::AGENTS;
use crate::app::App;
use crate::commands::docs::{DocsArgs, handle_docs_command};
use crate::session::Session;
use crate::terminal::Console;

pub(super) async fn tour(folder: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let repo = folder.join("docs/shop");
    for (path, text) in [
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n\n[dependencies]\nserde = \"1.0\"\n",
        ),
        (
            "src/main.rs",
            "mod till;\n\nfn main() {\n    till::pay(1);\n}\n",
        ),
        (
            "src/till.rs",
            "/// Takes money.\npub fn pay(cents: u32) {\n    let _ = cents;\n}\n",
        ),
    ] {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&repo))?;
        fs::write(path, text)?;
    }
    let model = MODEL.to_owned();
    let app = App::open(settings(folder, &model)?, AGENTS).await?;
    let script = Arc::new(Script::parse("demo-docs", SCRIPT)?);
    app.models.put(&model, script.clone());
    let person = Person::new(console, quiet, []);
    let session = Session {
        app: &app,
        terminal: &person,
        json: false,
    };
    let args = DocsArgs {
        folder: repo.clone(),
        agents: vec![
            "file-structure".to_owned(),
            "dependency-analyzer".to_owned(),
        ],
        ..DocsArgs::default()
    };
    person.line("archie> docs ./shop --agents file-structure,dependency-analyzer");
    let exit = handle_docs_command(&args, &model, &session).await?;
    ensure!(exit == Exit::Done, "it ended with {exit:?}");
    let row = only_thread(&app, "docs").await?;
    let thread = app.thread_of(&row)?;
    let state: DocsState = state_of(&*thread).await?;
    let scores: Vec<_> = state
        .results
        .iter()
        .map(|result| result.metadata.scores.clone())
        .collect();
    ensure!(
        scores == [vec![74, 88], vec![91]],
        "the scores are {scores:?}"
    );
    let written = fs::read_to_string(repo.join(".arch-docs/file-structure.md"))?;
    ensure!(
        !written.contains("cashier"),
        "a file that is not there is on the page"
    );
    ensure!(
        written.contains("3 files in 1 directories"),
        "the counts are missing"
    );
    script.finish()?;
    person.line("archie> docs ./shop --agents file-structure,dependency-analyzer");
    let again = handle_docs_command(&args, &model, &session).await?;
    ensure!(
        again == Exit::Done,
        "the second time it ended with {again:?}"
    );
    let check = DocsArgs {
        check: true,
        ..args
    };
    fs::write(repo.join("src/cash.rs"), "pub fn count() {}\n")?;
    person.line("archie> docs ./shop --check    # after src/cash.rs was added");
    let stale = handle_docs_command(&check, "", &session).await?;
    ensure!(stale == Exit::Failed, "the pages should be stale");
    Ok(())
}

pub(super) const MODEL: &str = "script:demo-docs";
pub(super) const SCRIPT: &str = include_str!("docs.json");
