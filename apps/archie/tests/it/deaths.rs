//! Processes of this program that die at a chosen point, over a folder that outlives them. For tests that kill everywhere.

use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use archie::agents::AGENTS;
use archie::app::App;
use archie::cli::settings::Settings;
use archie::session::Session;
use archie_agent::{Exit, Terminal, Waiting};
use serde_json::Value as Json;
use superstep::checkpoint::ThreadQuery;
use superstep_conformance::mortal::{Fate, Mortal};
use superstep_llm::{BoxFuture, Model, ModelError, ModelName, ReplyStream, Request, Script};
use superstep_sqlite::Sqlite;

use crate::kit::settings;

/// A process over this folder: its database, its ledger of what the model was asked.
pub(crate) fn home(folder: &Path, fate: &Arc<Fate>, replies: &Json) -> App {
    let sqlite = Sqlite::open(folder.join("threads.db")).unwrap();
    let store = Mortal::new(Arc::new(sqlite.clone()), fate.clone());
    let settings = Settings {
        model: Some(MODEL.to_owned()),
        ..settings(folder)
    };
    let home = App::over(settings, store, Arc::new(sqlite), AGENTS).unwrap();
    home.models.put(MODEL, model(folder, fate, replies));
    home
}

/// A scripted model with two points at which its process may die: before it is asked and after it has answered. It writes down in
/// the folder what it was asked.
pub(crate) fn model(folder: &Path, fate: &Arc<Fate>, replies: &Json) -> Arc<dyn Model> {
    let script = Script::parse("test", &replies.to_string()).unwrap();
    let script = script.with_ledger(folder.join("ledger")).unwrap();
    Arc::new(Deadly {
        script,
        fate: fate.clone(),
    })
}

/// Processes that die at these points, and then one that does not. Gives how many points that one came by.
pub(crate) async fn lives<T: PartialEq + Debug>(
    deaths: &[u64],
    live: impl AsyncFn(&Arc<Fate>) -> Option<T>,
    done: T,
) -> u64 {
    for death in deaths {
        let fate = Fate::at(*death);
        live(&fate).await;
        gone(&fate).await;
    }
    let fate = Fate::never();
    assert_eq!(live(&fate).await, Some(done), "{deaths:?}");
    fate.points()
}

/// Waits until nothing is left of a dead process. Its tasks are dropped when they would run next, and the last of them closes the
/// database, which first commits what was queued: a killed process commits nothing when the next one is there.
pub(crate) async fn gone(fate: &Arc<Fate>) {
    let begun = Instant::now();
    // Its store and its model know its fate, too.
    while Arc::strong_count(fate) > 1 {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "it is still there"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// One process: begins, or goes on with the thread that it finds. None if it died.
pub(crate) async fn live(
    home: &App,
    terminal: &dyn Terminal,
    fate: &Fate,
    begin: impl AsyncFnOnce(&Session<'_>) -> anyhow::Result<Exit>,
) -> Option<Exit> {
    let session = Session {
        app: home,
        terminal,
        json: false,
    };
    let life = async {
        let found = home.runtime.threads(&ThreadQuery::default()).await.unwrap();
        match found.first() {
            None => begin(&session).await,
            Some(row) => {
                let thread = home.thread_of(row).unwrap();
                let agent = home.agent(&row.graph).unwrap();
                session.resume(agent, &*thread).await
            }
        }
    };
    Box::pin(fate.lives(life)).await.map(Result::unwrap)
}

/// How often the model was asked.
pub(crate) fn asked(folder: &Path) -> usize {
    fs::read_to_string(folder.join("ledger"))
        .unwrap_or_default()
        .lines()
        .count()
}

#[derive(Debug)]
struct Deadly {
    script: Script,
    fate: Arc<Fate>,
}

impl Model for Deadly {
    fn name(&self) -> &ModelName {
        self.script.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            self.fate.point().await;
            let answer = self.script.stream(request).await;
            self.fate.point().await;
            answer
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.script.context_size()
    }
}

/// A person who answers what they have heard, and is shown nothing on the way: or when a process dies would depend on what it
/// happened to show.
pub(crate) struct Person<F> {
    heard: Mutex<Vec<String>>,
    answer: F,
}

impl<F: Fn(&str) -> String> Person<F> {
    /// Who answers the last line like this.
    pub(crate) fn who(answer: F) -> Self {
        Self {
            heard: Mutex::default(),
            answer,
        }
    }

    /// Every line that was said to them.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

impl<F: Fn(&str) -> String + Send + Sync> Terminal for Person<F> {
    fn line(&self, text: &str) {
        self.heard.lock().unwrap().push(text.to_owned());
    }

    fn ask(&self, _: &str) -> anyhow::Result<Option<String>> {
        let heard = self.heard();
        let last = heard.last().map_or("", String::as_str);
        Ok(Some((self.answer)(last)))
    }

    fn waiting(&self, _: &str) -> Waiting {
        Waiting::default()
    }

    fn is_watched(&self) -> bool {
        false
    }

    fn is_followed(&self) -> bool {
        false
    }

    fn markdown(&self, text: &str) {
        self.line(text);
    }

    fn piece(&self, _: &str) {}
    fn pieces_end(&self) {}
    fn aside(&self, _: &str) {}
}

pub(crate) const MODEL: &str = "script:test";
