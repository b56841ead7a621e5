//! `archie demo`: runs a scripted scenario of every agent without a model, with the same graphs, store and commands as usual, and then
//! serves the threads for `archie studio`'s page. Each scenario has its own file. Only that of `sheet` may use the network: once, to
//! install a Python environment.

mod analyze;
mod atris;
mod docs;
mod mail;
mod sheet;
mod studio;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use archie_agent::style::Face;
use archie_agent::{Exit, Terminal, Waiting};
use serde_json::json;
use superstep::checkpoint::{ThreadQuery, ThreadRow};

use crate::app::App;
use crate::cli::args::DemoArgs;
use crate::cli::settings::{Engine, SettingOptions, Settings, Store};
use crate::terminal::Console;

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<Exit> {
    let console = Console::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let folder = tempdir()?;
    let (folder, quiet) = (folder.as_path(), args.json);
    let mut scenarios = vec![
        (
            "analyze",
            runtime.block_on(analyze::tour(folder, &console, quiet)),
        ),
        (
            "docs",
            runtime.block_on(docs::tour(folder, &console, quiet)),
        ),
        (
            "atris",
            runtime.block_on(atris::tour(folder, &console, quiet)),
        ),
        (
            "email_assistant",
            runtime.block_on(mail::tour(folder, &console, quiet)),
        ),
    ];
    // A model's code runs only in a sandbox, with a Python that has pandas.
    let sheet = match archie_sheet::make_ready(|step| console.aside(&format!("sheet: {step}"))) {
        Ok(_) => runtime.block_on(sheet::tour(folder, &console, quiet)),
        Err(why) => Err(why.context("its code cannot run here")),
    };
    scenarios.push(("sheet", sheet));
    let mut passed = true;
    for (name, went) in &scenarios {
        match went {
            Ok(()) if args.json => {}
            Ok(()) => console.line(&format!("pass  {name}")),
            Err(error) => {
                passed = false;
                console.aside(&format!("FAIL  {name}: {error:#}"));
            }
        }
    }
    if args.json {
        let results = scenarios.iter().map(|(name, went)| match went {
            Ok(()) => json!({ "agent": name, "passed": true }),
            Err(error) => json!({ "agent": name, "passed": false, "why": format!("{error:#}") }),
        });
        console.json(&json!({ "passed": passed, "scenarios": results.collect::<Vec<_>>() }));
    }
    if passed && (args.studio || (console.is_watched() && !args.json)) {
        runtime.block_on(studio::serve(folder, &console))?;
    } else if passed && !args.json {
        console.line("To see these threads in Studio, run `archie demo --studio`.");
    }
    fs::remove_dir_all(folder)?;
    Ok(if passed { Exit::Done } else { Exit::Failed })
}

/// Returns the thread of an agent, which has one.
async fn only_thread(app: &App, graph: &str) -> anyhow::Result<ThreadRow> {
    let query = ThreadQuery {
        graph: Some(graph.to_owned()),
        ..ThreadQuery::default()
    };
    let mut rows = app.runtime.threads(&query).await?;
    ensure!(rows.len() == 1, "there are {} threads", rows.len());
    Ok(rows.remove(0))
}

fn settings(folder: &Path, model: &str) -> anyhow::Result<Settings> {
    let given = SettingOptions {
        model: Some(model.to_owned()),
        ..SettingOptions::default()
    };
    Ok(Settings {
        store: Store::Sqlite(folder.join("threads.db")),
        home: folder.to_owned(),
        files: folder.join("files"),
        engine: Engine::Local,
        budget: None,
        prompts: None,
        ..Settings::read(&given)?
    })
}

fn tempdir() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("archie-demo-{}", uuid::Uuid::now_v7()));
    fs::create_dir(&folder)?;
    Ok(folder)
}

/// A terminal whose person gives scripted answers.
struct Person<'a> {
    console: &'a Console,
    quiet: bool,
    says: Mutex<VecDeque<String>>,
}

impl<'a> Person<'a> {
    fn new(
        console: &'a Console,
        quiet: bool,
        says: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        Self {
            console,
            quiet,
            says: Mutex::new(says.into_iter().map(str::to_owned).collect()),
        }
    }
}

impl Terminal for Person<'_> {
    fn line(&self, text: &str) {
        if !self.quiet {
            self.console.line(text);
        }
    }

    fn markdown(&self, text: &str) {
        if !self.quiet {
            self.console.markdown(text);
        }
    }

    fn line_of(&self, parts: &[(Face, &str)]) {
        if !self.quiet {
            self.console.line_of(parts);
        }
    }

    fn verbatim(&self, text: &str) {
        if !self.quiet {
            self.console.verbatim(text);
        }
    }

    fn piece(&self, _text: &str) {}

    fn pieces_end(&self) {}

    fn aside(&self, text: &str) {
        self.line(text);
    }

    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        let said = self
            .says
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        if let Some(said) = &said {
            self.line(&format!("{prompt}{said}"));
        }
        Ok(said)
    }

    fn waiting(&self, _what: &str) -> Waiting {
        Waiting::default()
    }

    fn is_watched(&self) -> bool {
        false
    }
}
