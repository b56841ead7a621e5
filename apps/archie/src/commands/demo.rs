//! `archie demo`: runs a scripted scenario of every agent without a model, with the same graphs, store and commands as usual, and then
//! serves the threads for `archie studio`'s page. Each scenario has its own file. Only that of `sheet` may use the network: once, to
//! install a Python environment. At a terminal it pauses between agents. The folder stays, so that a person can look at what was
//! made; with `--json` it is removed.

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

use anyhow::{Context, ensure};
use archie_agent::style::Face;
use archie_agent::{Exit, Terminal, Waiting};
use serde_json::json;
use superstep::checkpoint::{ThreadQuery, ThreadRow};

use crate::app::App;
use crate::cli::args::DemoArgs;
use crate::cli::settings::{EncryptionSettings, Engine, SettingOptions, Settings, Store};
use crate::terminal::Console;

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<Exit> {
    let console = Console::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let folder = tempdir()?;
    let demo = Demo {
        folder: &folder,
        console: &console,
        runtime: &runtime,
        quiet: args.json,
    };
    let pauses = console.page_size().is_some() && !args.json && !args.no_pause;
    let mut results = Vec::new();
    for (at, scenario) in SCENARIOS.iter().enumerate() {
        if at > 0 && pauses && !is_continued(&console)? {
            break;
        }
        demo.introduce(at, scenario);
        results.push((scenario.agent, demo.play(scenario.agent)));
    }
    let passed = results.iter().all(|(_, went)| went.is_ok());
    let report_failures = || {
        for (name, went) in &results {
            if let Err(error) = went {
                console.aside(&format!("FAIL  {name}: {error:#}"));
            }
        }
    };
    if args.json {
        report_failures();
        let results = results.iter().map(|(name, went)| match went {
            Ok(()) => json!({ "agent": name, "passed": true }),
            Err(error) => json!({ "agent": name, "passed": false, "why": format!("{error:#}") }),
        });
        console.json(&json!({ "passed": passed, "scenarios": results.collect::<Vec<_>>() }));
        fs::remove_dir_all(&folder)?;
        return Ok(if passed { Exit::Done } else { Exit::Failed });
    }
    console.line("");
    for (name, _) in results.iter().filter(|(_, went)| went.is_ok()) {
        console.line_of(&[(Face::Ok, "pass  "), (Face::Plain, name)]);
    }
    report_failures();
    let is_whole = results.len() == SCENARIOS.len();
    demo.end();
    if passed && is_whole && (args.studio || console.is_watched()) {
        runtime.block_on(studio::serve(&folder, &console))?;
    } else if passed && is_whole {
        console.line("To see these threads in Studio, run `archie demo --studio`.");
    }
    Ok(if passed { Exit::Done } else { Exit::Failed })
}

/// Asks the person whether to go on. The end of the input means that they leave.
fn is_continued(console: &Console) -> anyhow::Result<bool> {
    console.line("");
    let typed = console.ask("Enter for the next agent, q to stop: ")?;
    Ok(typed.is_some_and(|typed| !matches!(typed.trim(), "q" | "quit")))
}

/// What a scenario shows, and why it matters.
struct Scenario {
    agent: &'static str,
    about: &'static str,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario {
        agent: "analyze",
        about: "An analyst reads two notes and asks you questions until you approve its proposal. \
                Every claim of the result is checked against the line that it quotes; one of them does not hold.",
    },
    Scenario {
        agent: "docs",
        about: "Two agents document a small program. One of them names a file that does not exist; the check finds it, \
                and the page is corrected before it is saved.",
    },
    Scenario {
        agent: "atris",
        about: "Questions become calls of a web API, from recorded answers here. What is missing is asked for, \
                and a call that would change something waits for your yes.",
    },
    Scenario {
        agent: "email_assistant",
        about: "Three mails come in: one is ignored, one is shown, and for one a reply is drafted. \
                Nothing is sent before you have read it; here you change it first.",
    },
    Scenario {
        agent: "sheet",
        about: "A model writes Python that counts the products of a workbook. The code runs in a sandbox, \
                and you see every changed cell before a new workbook is saved.",
    },
];

/// A tour in progress.
struct Demo<'a> {
    folder: &'a Path,
    console: &'a Console,
    runtime: &'a tokio::runtime::Runtime,
    quiet: bool,
}

impl Demo<'_> {
    fn introduce(&self, at: usize, scenario: &Scenario) {
        if self.quiet {
            return;
        }
        if at == 0 {
            self.console.line(
                "A tour of the five agents, with scripted answers instead of a model and a person. It needs no key.",
            );
        }
        self.console.line("");
        let number = format!("{} of {}: ", at + 1, SCENARIOS.len());
        self.console
            .line_of(&[(Face::Bold, &number), (Face::Bold, scenario.agent)]);
        self.console.line(scenario.about);
        self.console.line("");
    }

    fn play(&self, agent: &str) -> anyhow::Result<()> {
        let (folder, console, quiet) = (self.folder, self.console, self.quiet);
        match agent {
            "analyze" => self.runtime.block_on(analyze::tour(folder, console, quiet)),
            "docs" => self.runtime.block_on(docs::tour(folder, console, quiet)),
            "atris" => self.runtime.block_on(atris::tour(folder, console, quiet)),
            "email_assistant" => self.runtime.block_on(mail::tour(folder, console, quiet)),
            _ => {
                // A model's code runs only in a sandbox, with a Python that has pandas.
                let waiting = match quiet {
                    true => Waiting::default(),
                    false => console.waiting("starting the sandbox"),
                };
                let ready = archie_sheet::make_ready(|step| match console.is_watched() {
                    true => waiting.set_text(step),
                    false => console.aside(&format!("sheet: {step}")),
                });
                drop(waiting);
                ready.context("its code cannot run here")?;
                self.runtime.block_on(sheet::tour(folder, console, quiet))
            }
        }
    }

    /// Says where everything is, and what to try next.
    fn end(&self) {
        let folder = self.folder.display();
        self.console.line("");
        self.console
            .line(&format!("Everything that the demo made is in {folder}"));
        for (path, what) in [
            ("analyze/notes/analysis_result.md", "the analysis"),
            ("docs/shop/.arch-docs/index.html", "the documentation"),
            ("mail/mbox.outbox", "the mail that was sent"),
            ("sheet/out/workbook_new.xlsx", "the workbook"),
        ] {
            if self.folder.join(path).exists() {
                self.console.line(&format!("  {path}  {what}"));
            }
        }
        self.console.line("");
        self.console.line_of(&[(Face::Bold, "What to try next")]);
        let threads = format!("ARCHIE_HOME={folder} archie threads");
        for line in [
            "# threads of this demo",
            threads.as_str(),
            "archie setup                       # choose a model; a local one is enough",
            "archie analyze --query \"…\" --inputs DIR    # an analysis of your own notes",
            "archie inbox                       # everything that waits for you",
        ] {
            // Not broken, however long the folder is: a shell would run its parts.
            self.console.verbatim(&format!("  {line}"));
        }
        self.console.line("");
    }
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
        // A folder of its own, which a person looks into.
        encryption: EncryptionSettings::default(),
        models: Vec::new(),
        budget: None,
        prompts: None,
        web: None,
        ..Settings::read(&given)?
    })
}

fn tempdir() -> anyhow::Result<std::path::PathBuf> {
    // The end of the id is random. A short name fits into a line with the command that uses it.
    let id = uuid::Uuid::now_v7().simple().to_string();
    let folder = std::env::temp_dir().join(format!("archie-demo-{}", &id[24..]));
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

    fn waiting(&self, what: &str) -> Waiting {
        match self.quiet {
            true => Waiting::default(),
            false => self.console.waiting(what),
        }
    }

    fn is_watched(&self) -> bool {
        false
    }
}
