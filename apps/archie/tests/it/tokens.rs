//! What a model says is printed whole, however slowly the store is read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use archie::agents::AGENTS;
use archie::app::App;
use archie::cli::settings::Settings;
use archie::commands::analyze::{AnalyzeArgs, handle_analyze_command};
use archie::session::Session;
use archie_agent::{Exit, Terminal, Waiting};
use serde_json::json;
use superstep::Memory;
use superstep::checkpoint::{BoxFuture, CheckpointResult, Checkpointer};
use superstep::store::MemoryStore;
use superstep_conformance::forward;
use superstep_llm::Script;

use crate::deaths::MODEL;
use crate::kit::settings;

/// A store whose log is read slowly, as on a busy machine.
struct SlowLog {
    inner: Memory,
}

impl SlowLog {
    fn slowly<'a, T: Send + 'a>(
        &self,
        work: BoxFuture<'a, CheckpointResult<T>>,
    ) -> BoxFuture<'a, CheckpointResult<T>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(40)).await;
            work.await
        })
    }
}

impl Checkpointer for SlowLog {
    forward! { through slowly: entries }
    forward! { create annotate save record answer request_cancel copy prune expire import delete forget }
    forward! { load load_at glance unfinished renew threads count_threads sizes interrupts overdue expired export }
}

/// A terminal that somebody watches, and that keeps what was printed, in order.
#[derive(Default)]
struct Watched(Mutex<Vec<String>>);

impl Watched {
    fn keep(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

impl Terminal for Watched {
    fn line(&self, text: &str) {
        self.keep(text);
    }

    fn markdown(&self, text: &str) {
        self.keep(text);
    }

    fn piece(&self, text: &str) {
        self.keep(text);
    }

    fn pieces_end(&self) {}

    fn aside(&self, text: &str) {
        self.keep(text);
    }

    fn ask(&self, _: &str) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    fn waiting(&self, _: &str) -> Waiting {
        Waiting::default()
    }

    fn is_watched(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn an_answer_whose_tokens_are_lost_is_still_printed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    std::fs::write(notes.join("a.md"), "Ten thousand orders a day.\n").unwrap();
    let settings = Settings {
        model: Some(MODEL.to_owned()),
        ..settings(folder.path())
    };
    let store = SlowLog {
        inner: Memory::default(),
    };
    let app = App::over(settings, store, Arc::new(MemoryStore::default()), AGENTS).unwrap();
    let replies =
        json!({ "replies": [{ "at": "initial", "text": "Does anything here need Kafka?" }] });
    let script = Script::parse("test", &replies.to_string()).unwrap();
    app.models.put(MODEL, Arc::new(script));
    let terminal = Watched::default();
    let session = Session {
        app: &app,
        terminal: &terminal,
        json: false,
    };
    let args = AnalyzeArgs {
        query: Some("Choose a queue".to_owned()),
        inputs: Some(notes),
        recursive: false,
        images: false,
        memory_file: None,
        recheck: None,
        json: false,
    };
    let exit = handle_analyze_command(&args, MODEL, &session)
        .await
        .unwrap();
    assert_eq!(exit, Exit::Paused);
    let printed = terminal.0.into_inner().unwrap();
    // Streamed or displayed: whole, and once.
    let text = printed.concat();
    let answer = "Agent: Does anything here need Kafka?";
    assert_eq!(text.matches(answer).count(), 1, "{printed:?}");
    assert!(text.contains("1 model call"), "{printed:?}");
}
