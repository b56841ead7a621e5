//! A tour: a scripted scenario of every agent, offline, with the same graphs, store and commands as in earnest.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use serde_json::json;
use superstep_llm::Script;

use crate::agents::analyze::command::{AnalyzeArgs, handle_analyze_command};
use crate::agents::analyze::state::{AppState, PromptType, Role, Section, Support};
use crate::cli::args::JsonArgs;
use crate::cli::settings::{Given, Settings, Store};
use crate::exit::Exit;
use crate::home::Home;
use crate::say::{Console, Say, Waiting};

pub(super) fn run(args: &JsonArgs) -> anyhow::Result<Exit> {
    let console = Console::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let folder = tempdir()?;
    let scenarios = [(
        "analyze",
        runtime.block_on(analyze(&folder, &console, args.json)),
    )];
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
    fs::remove_dir_all(&folder)?;
    if args.json {
        let results = scenarios
            .iter()
            .map(|(name, went)| json!({ "agent": name, "passed": went.is_ok() }));
        console.json(&json!({ "passed": passed, "scenarios": results.collect::<Vec<_>>() }));
    }
    Ok(if passed { Exit::Done } else { Exit::Failed })
}

/// Somebody chooses a queue.
async fn analyze(folder: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let notes = folder.join("notes");
    fs::create_dir(&notes)?;
    fs::write(
        notes.join("a.md"),
        "# Orders\n\nTen thousand orders a day.\nOrders of one customer must stay in order.\n",
    )?;
    fs::write(
        notes.join("b.txt"),
        "Kafka was proposed, but nobody here has run Kafka.\nWe have one machine.\n",
    )?;
    fs::write(notes.join("c.png"), b"\x89PNG")?;
    let model = "script:demo".to_owned();
    let home = Home::open(settings(folder, &model)?).await?;
    let script = Arc::new(Script::parse("demo", include_str!("demo/analyze.json"))?);
    home.models.put(&model, script.clone());
    let says = ["yes, per customer", "not done yet", "SOLUTION APPROVED"];
    let person = Person::new(console, quiet, says);
    let args = AnalyzeArgs {
        query: Some("Choose a queue".to_owned()),
        inputs: Some(notes.clone()),
        recursive: false,
        recheck: None,
        json: false,
    };
    person.line("archie> analyze --query \"Choose a queue\" --inputs ./notes");
    let exit = handle_analyze_command(&args, &model, &home, &person).await?;
    ensure!(exit == Exit::Done, "it ended with {exit:?}");
    let rows = home.runtime.threads(&Default::default()).await?;
    ensure!(rows.len() == 1, "there are {} threads", rows.len());
    let thread = home
        .runtime
        .thread(&home.analyze, rows[0].thread.to_string())?;
    let state = thread
        .state()
        .await?
        .ok_or_else(|| anyhow::anyhow!("no state"))?;
    check(&state.values.decode()?)?;
    let written = fs::read_to_string(notes.join("analysis_result.md"))?;
    for section in Section::ALL {
        let heading = format!("## {}", section.heading());
        ensure!(
            written.contains(&heading),
            "the result has no heading `{heading}`"
        );
    }
    script.finish()?;
    person.line(&format!("archie> trace {}", rows[0].thread));
    person.line(thread.trace().await?.to_string().trim_end());
    Ok(())
}

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

fn settings(folder: &Path, model: &str) -> anyhow::Result<Settings> {
    let given = Given {
        model: Some(model.to_owned()),
        store: None,
    };
    Ok(Settings {
        store: Store::Sqlite(folder.join("threads.db")),
        home: folder.to_owned(),
        prompts: None,
        ..Settings::read(&given)?
    })
}

fn tempdir() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("archie-demo-{}", uuid::Uuid::now_v7()));
    fs::create_dir(&folder)?;
    Ok(folder)
}

/// Somebody who says what is written down.
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

impl Say for Person<'_> {
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
