//! Demo of `atris`, from recorded responses of Audius: a complete question, one that lacks a value, and one that would change
//! data.

use std::path::Path;

use anyhow::ensure;
use archie_agent::{Exit, Terminal, state_of};
use archie_atris::state::AtrisState;
use archie_atris::{AUDIUS, record_answer};

use super::{Person, only_thread, settings};
use crate::agents::AGENTS;
use crate::app::App;
use crate::commands::atris::{AtrisArgs, handle_atris_command};
use crate::session::Session;
use crate::terminal::Console;

pub(super) async fn tour(folder: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let mut app = App::open(settings(folder, "script:none")?, AGENTS).await?;
    app.settings.model = None;
    let recorded: serde_json::Value = serde_json::from_str(include_str!("atris.json"))?;
    for (path, body) in recorded.as_object().into_iter().flatten() {
        record_answer(&*app.memory, AUDIUS, path, body.clone()).await?;
    }
    let person = Person::new(console, quiet, ["D7KyD", "ignore"]);
    let session = Session {
        app: &app,
        terminal: &person,
        json: false,
    };
    let mut thread = None;
    for (query, wanted) in [
        ("What are the trending tracks on Audius?", Exit::Done),
        ("Show track", Exit::Done),
        ("favorite track D7KyD user_id=nlGNe", Exit::Failed),
    ] {
        person.line(&format!("archie> atris \"{query}\" --offline"));
        let args = AtrisArgs {
            query: Some(query.to_owned()),
            api: None,
            call: None,
            extract: None,
            log_state: None,
            thread: thread.clone(),
            offline: true,
            debug: false,
            json: false,
            command: None,
        };
        let exit = handle_atris_command(&args, &session).await?;
        ensure!(exit == wanted, "`{query}` ended with {exit:?}");
        thread = Some(only_thread(&app, "atris").await?.thread.to_string());
    }
    let (thread, _) = app.find(&thread.unwrap_or_default()).await?;
    check_answers(&state_of(&*thread).await?)
}

fn check_answers(state: &AtrisState) -> anyhow::Result<()> {
    let said = state.message_history.iter();
    let said: Vec<&str> = said.map(|said| said.content.as_str()).collect();
    ensure!(
        said.len() == 6 && said[1].contains("1. \"Example Track\" by Example Artist (1,234 plays)"),
        "it said {said:?}"
    );
    ensure!(said[5].contains("you said no"), "it said {said:?}");
    let kept = AtrisState {
        llm: state.llm.clone(),
        selected_host: state.selected_host.clone(),
        error_history: state.error_history.clone(),
        message_history: state.message_history.clone(),
        ..AtrisState::default()
    };
    ensure!(*state == kept, "something of the last question is left");
    Ok(())
}
