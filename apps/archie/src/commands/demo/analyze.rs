//! Demo of `analyze`: a person chooses a queue.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use archie_agent::{Exit, Terminal, state_of};
use archie_analyze::state::{AppState, PromptType, Role, Section, Support};
use superstep_llm::Script;

use super::{Person, only_thread, settings};
use crate::agents::AGENTS;
use crate::app::App;
use crate::commands::analyze::{AnalyzeArgs, handle_analyze_command};
use crate::session::Session;
use crate::terminal::Console;

pub(super) async fn tour(folder: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let notes = folder.join("analyze/notes");
    fs::create_dir_all(&notes)?;
    fs::write(
        notes.join("a.md"),
        "# Orders\n\nTen thousand orders a day.\nOrders of one customer must stay in order.\n",
    )?;
    fs::write(
        notes.join("b.txt"),
        "Kafka was proposed, but nobody here has run Kafka.\nWe have one machine.\n",
    )?;
    fs::write(notes.join("c.png"), b"\x89PNG")?;
    let model = MODEL.to_owned();
    let app = App::open(settings(folder, &model)?, AGENTS).await?;
    let script = Arc::new(Script::parse("demo-analyze", SCRIPT)?);
    app.models.put(&model, script.clone());
    let says = ["yes, per customer", "not done yet", "SOLUTION APPROVED"];
    let person = Person::new(console, quiet, says);
    let args = AnalyzeArgs {
        query: Some("Choose a queue".to_owned()),
        inputs: Some(notes.clone()),
        recursive: false,
        images: false,
        memory_file: None,
        recheck: None,
        json: false,
    };
    person.line("archie> analyze --query \"Choose a queue\" --inputs ./notes");
    let session = Session {
        app: &app,
        terminal: &person,
        json: false,
    };
    let exit = handle_analyze_command(&args, &model, &session).await?;
    ensure!(exit == Exit::Done, "it ended with {exit:?}");
    let row = only_thread(&app, "analyze").await?;
    let thread = app.thread_of(&row)?;
    check(&state_of(&*thread).await?)?;
    let written = fs::read_to_string(notes.join("analysis_result.md"))?;
    for section in Section::ALL {
        let heading = format!("## {}", section.heading());
        ensure!(
            written.contains(&heading),
            "the result has no heading `{heading}`"
        );
    }
    script.finish()?;
    person.line(&format!("archie> trace {}", row.thread));
    person.verbatim(thread.trace().await?.to_string().trim_end());
    Ok(())
}

pub(super) const MODEL: &str = "script:demo-analyze";
pub(super) const SCRIPT: &str = include_str!("analyze.json");

fn check(state: &AppState) -> anyhow::Result<()> {
    let roles: Vec<_> = state
        .analysis_history
        .iter()
        .map(|turn| turn.role)
        .collect();
    let in_turn = roles
        .chunks(2)
        .all(|pair| pair[0] == Role::User && pair.get(1).is_none_or(|role| *role == Role::Agent));
    ensure!(
        in_turn && roles.len() == 7,
        "they did not speak in turn: {roles:?}"
    );
    let calls: Vec<_> = state.calls.iter().map(|call| call.prompt).collect();
    let wanted = [
        PromptType::Initial,
        PromptType::Followup,
        PromptType::Followup,
        PromptType::Final,
    ];
    ensure!(calls == wanted, "the model was asked {calls:?}");
    let unsupported = state
        .findings
        .iter()
        .filter(|finding| finding.support == Support::Unsupported)
        .count();
    ensure!(
        unsupported == 1,
        "{unsupported} claims are marked as unsupported, not the one that is"
    );
    Ok(())
}
