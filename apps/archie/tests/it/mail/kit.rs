//! A mailbox, a model and a person, and the real graph between them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use archie::app::App;
use archie::cli::settings::Settings;
use archie::commands::mail::{Ingest, IngestedMail};
use archie_agent::{Agent, AgentDeps, state_of};
use archie_email_assistant::mailbox::{LocalMailbox, Mailbox, Mailboxes};
use archie_email_assistant::state::MailState;
use archie_email_assistant::{NAME, agent_with};
use serde_json::{Value as Json, json};
use superstep::AnyThread;
use superstep::run::OpenInterrupt;
use superstep::{Checkpointer, InterruptId, Outcome};
use superstep_llm::{Message, Model, Request, Script};
use superstep_sqlite::Sqlite;

use crate::kit::settings;

pub(crate) const MODEL: &str = "script:mail";
pub(crate) const ACCOUNT: &str = "alice@example.com";

/// What outlives every process: a folder with a database and a mailbox.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    model: Arc<dyn Model>,
}

impl World {
    pub(crate) fn new(replies: &Json) -> Self {
        let script = json!({ "replies": replies });
        Self::with_model(Arc::new(
            Script::parse("mail", &script.to_string()).unwrap(),
        ))
    }

    pub(crate) fn with_model(model: Arc<dyn Model>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, model }
    }

    pub(crate) fn mbox(&self) -> PathBuf {
        self.folder.path().join("mbox")
    }

    pub(crate) fn outbox(&self) -> PathBuf {
        self.folder.path().join("mbox.outbox")
    }

    /// Puts mails into the mailbox.
    pub(crate) fn with_mails(self, mails: &[String]) -> Self {
        fs::write(self.mbox(), mbox(mails)).unwrap();
        self
    }

    /// One process over the store in the folder.
    pub(crate) fn home(&self) -> App {
        let local = Arc::new(LocalMailbox::open(&self.mbox()));
        self.home_over(local, |sqlite| sqlite)
    }

    pub(crate) fn home_over<C: Checkpointer + 'static>(
        &self,
        mailbox: Arc<dyn Mailbox>,
        wrap: impl FnOnce(Sqlite) -> C,
    ) -> App {
        let sqlite = Sqlite::open(self.folder.path().join("threads.db")).unwrap();
        let mailboxes = Mailboxes::new(self.folder.path());
        mailboxes.put(&self.source(), mailbox);
        BOXES
            .lock()
            .unwrap()
            .insert(self.folder.path().to_owned(), Arc::new(mailboxes));
        let settings = Settings {
            model: Some(MODEL.to_owned()),
            ..settings(self.folder.path())
        };
        let home = App::over(settings, wrap(sqlite.clone()), Arc::new(sqlite), &[maker]).unwrap();
        home.models.put(MODEL, self.model.clone());
        home
    }

    pub(crate) fn source(&self) -> String {
        self.mbox().display().to_string()
    }

    pub(crate) fn mailboxes(&self) -> Arc<Mailboxes> {
        BOXES.lock().unwrap()[self.folder.path()].clone()
    }

    pub(crate) async fn ingest(&self, home: &App) -> Vec<IngestedMail> {
        self.ingest_with(home, self.ingest_of()).await
    }

    pub(crate) fn ingest_of(&self) -> Ingest {
        Ingest {
            source: self.source(),
            model: MODEL.to_owned(),
            ..Ingest::default()
        }
    }

    pub(crate) async fn ingest_with(&self, home: &App, ingest: Ingest) -> Vec<IngestedMail> {
        ingest.run(home, &self.mailboxes(), |_| {}).await.unwrap()
    }

    /// The mails that went out, by Message-ID.
    pub(crate) fn sent(&self) -> BTreeMap<String, String> {
        files(&self.outbox(), "eml")
    }

    /// The meetings that were made.
    pub(crate) fn meetings(&self) -> BTreeMap<String, String> {
        files(&self.folder.path().join("mbox.calendar"), "ics")
    }
}

fn files(folder: &Path, extension: &str) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|known| known == extension))
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect()
}

/// An agent is made by a function, so what a test gives it lies here.
static BOXES: Mutex<BTreeMap<PathBuf, Arc<Mailboxes>>> = Mutex::new(BTreeMap::new());

fn maker(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let boxes = BOXES.lock().unwrap()[&deps.data_folder].clone();
    agent_with(deps, boxes)
}

/// Mails as they stand in an mbox file.
pub(crate) fn mbox(mails: &[String]) -> String {
    let mails = mails.iter();
    mails
        .map(|mail| format!("From x Mon Jan  1 00:00:00 2025\n{mail}\n\n"))
        .collect()
}

/// A mail as bytes.
pub(crate) fn mail(id: &str, from: &str, subject: &str, body: &str) -> String {
    mail_with(id, from, subject, body, "")
}

/// With more headers, a line each.
pub(crate) fn mail_with(id: &str, from: &str, subject: &str, body: &str, headers: &str) -> String {
    format!(
        "From: {from}\nTo: {ACCOUNT}\nSubject: {subject}\nMessage-ID: <{id}>\nDate: Mon, 6 Jan 2025 10:00:00 +0000\n{headers}\n{body}\n"
    )
}

/// A classification of a mail from Bob, whose address is the quotation.
pub(crate) fn triage(classification: &str) -> Json {
    triage_of("bob@example.com", classification)
}

pub(crate) fn triage_of(quote: &str, classification: &str) -> Json {
    json!({ "at": "triage_router", "json": { "quote": quote, "reasoning": "because", "classification": classification } })
}

/// The subject of the mail that a triage request is about, which is always a quotation of it.
pub(crate) fn subject_in(request: &Request) -> String {
    let asked = request.messages.iter().map(Message::text);
    let mail = asked.collect::<Vec<_>>().join("\n");
    let subject = mail.rsplit("**Subject**: ").next().unwrap_or_default();
    subject.lines().next().unwrap_or_default().to_owned()
}

pub(crate) fn wants(calls: Json) -> Json {
    json!({ "at": "llm_call", "tool_calls": calls })
}

pub(crate) fn sends(text: &str) -> Json {
    json!({ "name": "send_email_tool", "args": { "response_text": text } })
}

pub(crate) fn schedules(attendees: &[&str]) -> Json {
    json!({ "name": "schedule_meeting_tool", "args": {
        "attendees": attendees, "title": "Sync", "start_time": "2025-01-10T10:00:00", "end_time": "2025-01-10T10:30:00"
    } })
}

pub(crate) fn done() -> Json {
    json!({ "name": "Done", "args": { "done": true } })
}

pub(crate) fn learns(line: &str) -> Json {
    json!({ "at": "learn", "json": { "chain_of_thought": "", "user_preferences": line, "replaces": 0 } })
}

/// The thread of a mail.
pub(crate) fn thread(home: &App, id: &str) -> Arc<dyn AnyThread> {
    let agent = home.agent(NAME).unwrap();
    agent.thread(&home.runtime, id, Default::default()).unwrap()
}

pub(crate) async fn state(home: &App, id: &str) -> MailState {
    state_of(&*thread(home, id)).await.unwrap()
}

/// What a thread asks.
pub(crate) async fn asked(home: &App, id: &str) -> Vec<(InterruptId, Json)> {
    let open: Vec<OpenInterrupt> = thread(home, id).interrupts().await.unwrap();
    open.iter()
        .map(|open| (open.interrupt.id, open.interrupt.request.decode().unwrap()))
        .collect()
}

/// Answers the first question of a thread, and says how it came to rest.
pub(crate) async fn answer(home: &App, id: &str, answer: Json) -> Outcome {
    let (question, _) = asked(home, id)
        .await
        .into_iter()
        .next()
        .expect("it asks nothing");
    answer_to(home, id, question, answer).await
}

pub(crate) async fn answer_to(
    home: &App,
    id: &str,
    question: InterruptId,
    answer: Json,
) -> Outcome {
    let rest = thread(home, id)
        .answer_as("ada", vec![(question, answer)])
        .await
        .unwrap();
    rest.expect("nobody else runs it").outcome
}

pub(crate) fn accept() -> Json {
    json!({ "type": "accept", "args": null })
}

pub(crate) fn ignore() -> Json {
    json!({ "type": "ignore", "args": null })
}

/// The messages of a state, in a word each.
pub(crate) fn kinds(state: &MailState) -> Vec<String> {
    let stored = serde_json::to_value(&state.messages).unwrap();
    let messages = stored.as_array().unwrap().iter();
    messages
        .map(|message| message["type"].as_str().unwrap().to_owned())
        .collect()
}
