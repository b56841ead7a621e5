//! Somebody asks Audius, from recordings: a question that is known, one that lacks something, and one that would change something.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use super::{Person, settings};
use crate::agents::atris::command::{AtrisArgs, handle_atris_command};
use crate::agents::atris::state::AtrisState;
use crate::agents::atris::{AUDIUS, record_answer};
use crate::agents::{AGENTS, state_of};
use crate::exit::Exit;
use crate::home::Home;
use crate::say::{Console, Say};
use crate::talk::Talk;

pub(super) async fn tour(folder: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let folder = &folder.join("atris");
    fs::create_dir(folder)?;
    let mut home = Home::open(settings(folder, "script:none")?, AGENTS).await?;
    home.settings.model = None;
    let recorded: serde_json::Value = serde_json::from_str(include_str!("atris.json"))?;
    for (path, body) in recorded.as_object().into_iter().flatten() {
        record_answer(&*home.memory, AUDIUS, path, body.clone()).await?;
    }
    let person = Person::new(console, quiet, ["D7KyD", "ignore"]);
    let talk = Talk {
        home: &home,
        say: &person,
        json: false,
    };
    let mut thread = None;
    for (query, wanted) in [
        ("What are the trending tracks on Audius?", Exit::Done),
        ("Show track", Exit::Done),
        ("favorite track D7KyD user_id=nlGNe", Exit::Failed),
    ] {
        person.line(&format!("archie> atris \"{query}\" --offline --debug"));
        let args = AtrisArgs {
            query: Some(query.to_owned()),
            api: None,
            thread: thread.clone(),
            offline: true,
            debug: true,
            json: false,
            command: None,
        };
        let exit = handle_atris_command(&args, &talk).await?;
        ensure!(exit == wanted, "`{query}` ended with {exit:?}");
        let rows = home.runtime.threads(&Default::default()).await?;
        ensure!(rows.len() == 1, "there are {} threads", rows.len());
        thread = Some(rows[0].thread.to_string());
    }
    let (thread, _) = home.find(&thread.unwrap_or_default()).await?;
    check_answers(&state_of(&*thread).await?)
}

fn check_answers(state: &AtrisState) -> anyhow::Result<()> {
    let said = state.message_history.iter();
    let said: Vec<&str> = said.map(|said| said.content.as_str()).collect();
    ensure!(
        said.len() == 6 && said[1].contains("1. \"Example Track\" by Example Artist (1,234 plays)"),
        "it said {said:?}"
    );
    ensure!(said[5].contains("a person said no"), "it said {said:?}");
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
