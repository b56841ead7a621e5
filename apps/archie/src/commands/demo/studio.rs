//! Serves the threads of the demo with their web page. A mail waits for an answer there, and one run has failed.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use archie_agent::Terminal;
use archie_email_assistant::mailbox::Mailboxes;
use clap::Parser;
use serde_json::Value as Json;
use superstep_llm::Script;

use super::{Person, analyze, docs, mail, settings, sheet};
use crate::agents::AGENTS;
use crate::app::App;
use crate::cli::args::{Args, Command};
use crate::commands::analyze::{AnalyzeArgs, handle_analyze_command};
use crate::commands::mail::{IngestArgs, handle_ingest};
use crate::commands::serve;
use crate::session::Session;
use crate::storage::open_sqlite;
use crate::terminal::Console;

/// Serves the threads below a folder until the person ends it.
pub(super) async fn serve(folder: &Path, console: &Console) -> anyhow::Result<()> {
    let store = open_sqlite(&folder.join("threads.db"))?;
    let memory = Arc::new(store.clone());
    let app = App::over(settings(folder, MODEL)?, store.clone(), memory, AGENTS)?;
    for (model, script) in [
        (analyze::MODEL, analyze::SCRIPT),
        (docs::MODEL, docs::SCRIPT),
        (mail::MODEL, mail::SCRIPT),
        (sheet::MODEL, sheet::SCRIPT),
        (MODEL, include_str!("studio.json")),
    ] {
        app.models
            .put(model, Arc::new(patient_script(model, script)?));
    }
    leave_a_mail(folder, &app, console).await?;
    leave_a_failure(folder, &app, console).await;
    console.line("The threads of this demo are in Studio until you press Ctrl C. A mail waits there for your answer.");
    let listen = free_address().to_string();
    let command = Args::try_parse_from(["archie", "serve", "--listen", &listen])?.command;
    let Some(Command::Serve(args)) = command else {
        bail!("`serve` is another command");
    };
    serve::serve_app(&args, app, Arc::new(store), console).await?;
    Ok(())
}

/// Returns a script with its replies many times over, because nobody knows what a visitor tries.
fn patient_script(name: &str, text: &str) -> anyhow::Result<Script> {
    let mut script: Json = serde_json::from_str(text)?;
    if let Some(replies) = script["replies"].as_array_mut() {
        *replies = vec![replies.clone(); REPETITIONS].concat();
    }
    Ok(Script::parse(name, &script.to_string())?)
}

async fn leave_a_mail(folder: &Path, app: &App, console: &Console) -> anyhow::Result<()> {
    let mbox = folder.join("studio.mbox");
    fs::write(&mbox, MAIL)?;
    let args = IngestArgs {
        source: mbox.display().to_string(),
        ..IngestArgs::default()
    };
    let mailboxes = Mailboxes::new(&app.settings.home);
    let unseen = Person::new(console, true, []);
    handle_ingest(&args, app, &mailboxes, &unseen).await?;
    Ok(())
}

/// Leaves a run whose model refused the key, as it happens on a first day.
async fn leave_a_failure(folder: &Path, app: &App, console: &Console) {
    let unseen = Person::new(console, true, []);
    let session = Session {
        app,
        terminal: &unseen,
        json: false,
    };
    let args = AnalyzeArgs {
        query: Some("Choose a database".to_owned()),
        inputs: Some(folder.join("analyze/notes")),
        recursive: false,
        images: false,
        memory_file: None,
        recheck: None,
        json: false,
    };
    // It is meant to fail, and is in the list of threads then.
    let _failed = handle_analyze_command(&args, MODEL, &session).await;
}

/// Returns the usual address of the server, or one with another port if that is taken.
fn free_address() -> SocketAddr {
    let usual = SocketAddr::from(([127, 0, 0, 1], 2024));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from(([127, 0, 0, 1], 0)),
    }
}

const MODEL: &str = "script:demo-studio";
const REPETITIONS: usize = 50;

const MAIL: &str = "\
From bob@example.com Tue Jan  7 10:00:00 2025
From: Bob <bob@example.com>
To: ada@example.com
Subject: Lunch on Thursday?
Message-ID: <lunch@example.com>
Date: Tue, 7 Jan 2025 10:00:00 +0000

Shall we have lunch on Thursday? Say when it suits you.
";
