//! Databases that an older version wrote, with threads that are paused, that failed and whose process was killed: this version lists
//! them, answers them and resumes them to their ends, and repeats nothing that was done before.
//!
//! `tests/fixtures/old_database/README.md` says what is in them and how they were made.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use calamine::{Reader, Xlsx};
use serde_json::{Value as Json, json};
use superstep_conformance::services;

use crate::atris::server::{self, Got, Server, ServerReply, track};
use crate::cluster::Database;
use crate::kit::Ran;

/// What the old program left: its folder, its store and the API that it asked.
struct OldWorld {
    folder: PathBuf,
    store: String,
    /// The threads, by what they are there for: the agent and the status.
    threads: BTreeMap<String, String>,
    api: Server,
    /// The last ones to go: a database is dropped and the folder is free for the next test when nothing uses them any more.
    _database: Option<Database>,
    _turn: File,
}

impl OldWorld {
    fn sqlite() -> Self {
        let (folder, turn) = unpack("sqlite");
        let store = format!("sqlite:{}", folder.join("home/threads.db").display());
        Self::over(folder, turn, store, None, "127.77.97.1:7797")
    }

    fn postgres() -> Self {
        let (folder, turn) = unpack("postgres");
        let database = Database::new();
        let restored = Command::new("psql")
            .args([&database.store(), "--quiet", "--set", "ON_ERROR_STOP=1"])
            .arg("--file")
            .arg(folder.join("dump.sql"))
            .output()
            .unwrap();
        assert!(restored.status.success(), "{restored:?}");
        let store = database.store();
        Self::over(folder, turn, store, Some(database), "127.77.97.2:7797")
    }

    fn over(
        folder: PathBuf,
        turn: File,
        store: String,
        database: Option<Database>,
        address: &str,
    ) -> Self {
        let threads = fs::read_to_string(folder.join("threads.json")).unwrap();
        Self {
            folder,
            store,
            threads: serde_json::from_str(&threads).unwrap(),
            api: Server::start_at(address, answer),
            _database: database,
            _turn: turn,
        }
    }

    fn archie(&self, name: &str, args: &[&str], input: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archie"));
        // No thread asks it: an ingest without new mail only opens it.
        fs::write(self.folder.join("none.json"), r#"{"replies": []}"#).unwrap();
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("ARCHIE_HOME", self.folder.join("home"))
            .env("ARCHIE_STORE", &self.store)
            .env("ARCHIE_MODEL", "script:none.json")
            .env("ARCHIE_PERSON", "ada")
            .env("ARCHIE_PYTHON", services::program("sandbox"))
            .env("SUPERSTEP_SCRIPT_LEDGER", self.ledger(name))
            .args(args);
        Ran::of(command, input)
    }

    fn json(&self, args: &[&str]) -> Json {
        let ran = self.archie("none", args, "");
        assert_eq!(ran.code(), Some(0), "{args:?}: {ran:?}");
        serde_json::from_str(&ran.out()).unwrap()
    }

    /// Every status, by what the thread is there for.
    fn statuses(&self) -> BTreeMap<&str, String> {
        let listed = self.json(&["threads", "--limit", "1000", "--json"]);
        let listed: BTreeMap<&str, &str> = (listed.as_array().unwrap().iter())
            .map(|row| {
                (
                    row["thread"].as_str().unwrap(),
                    row["status"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(listed.len(), self.threads.len(), "{listed:?}");
        (self.threads.iter())
            .map(|(name, thread)| (name.as_str(), listed[thread.as_str()].to_owned()))
            .collect()
    }

    /// Resumes a thread to its end. Its model has these replies and none that it gave before, and a person these answers. Returns
    /// what was printed.
    fn finish(&self, name: &str, replies: &Json, answers: &str) -> String {
        self.finish_with(&[], name, replies, answers)
    }

    /// The same, with options of the program.
    fn finish_with(&self, options: &[&str], name: &str, replies: &Json, answers: &str) -> String {
        let script = json!({ "replies": replies });
        fs::write(self.path(&format!("{name}.json")), script.to_string()).unwrap();
        let args = [options, &["resume", &self.threads[name]]].concat();
        let ran = self.archie(name, &args, answers);
        assert_eq!(ran.code(), Some(0), "{name}: {ran:?}");
        ran.out()
    }

    /// What this version asked the model of a thread, by label.
    fn asked(&self, name: &str) -> Vec<String> {
        let ledger = fs::read_to_string(self.ledger(name)).unwrap_or_default();
        let lines = ledger
            .lines()
            .map(|line| serde_json::from_str::<Json>(line).unwrap());
        lines
            .map(|line| line["request"]["label"].as_str().unwrap().to_owned())
            .collect()
    }

    fn ledger(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.ledger"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Takes the mails from an outbox, as a mail server would.
    fn take_sent(&self, name: &str) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.path(&format!("{name}/mbox.outbox"))) else {
            return Vec::new();
        };
        let paths = files.map(|file| file.unwrap().path());
        let mails = paths.filter(|path| path.extension() == Some("eml".as_ref()));
        mails
            .map(|path| {
                let mail = fs::read_to_string(&path).unwrap();
                fs::remove_file(path).unwrap();
                mail
            })
            .collect()
    }
}

impl Drop for OldWorld {
    fn drop(&mut self) {
        // The next test removes what is left.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Unpacks a fixture to where it was made, because threads remember folders by their full path. Two tests at a time, of two
/// checkouts, would be in each other's way, so the second one waits.
fn unpack(kind: &str) -> (PathBuf, File) {
    let above = Path::new("/tmp/archie-old-database");
    fs::create_dir_all(above).unwrap();
    let turn = File::create(above.join(format!("{kind}.lock"))).unwrap();
    turn.lock().unwrap();
    let folder = above.join(kind);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/old_database");
    let archive = File::open(fixtures.join(format!("{kind}.zip"))).unwrap();
    let mut archive = zip::ZipArchive::new(archive).unwrap();
    archive.extract(&folder).unwrap();
    (folder, turn)
}

/// The API that the old program asked, some time later.
fn answer(got: &Got) -> ServerReply {
    match got.path.starts_with("/v1/tracks/trending") {
        true => ServerReply::Json(
            200,
            json!({ "data": (2..12).map(track).collect::<Vec<_>>() }),
        ),
        false => server::audius(got),
    }
}

#[test]
fn threads_in_a_sqlite_file_of_an_older_version_come_to_their_ends() {
    all_come_to_their_ends(&OldWorld::sqlite());
}

#[test]
fn threads_in_a_postgresql_dump_of_an_older_version_come_to_their_ends() {
    all_come_to_their_ends(&OldWorld::postgres());
}

fn all_come_to_their_ends(world: &OldWorld) {
    every_thread_can_be_read(world);
    analyses_end_with_their_files(world);
    workbooks_end_with_their_changes(world);
    documentation_ends_with_its_pages(world);
    api_calls_end_and_no_change_is_made_twice(world);
    a_watch_compares_with_what_it_saw_before(world);
    mails_end_and_none_is_sent_twice(world);
    for (name, status) in world.statuses() {
        assert_eq!(status, "idle", "{name}");
    }
    assert_eq!(world.json(&["inbox", "--json"]), json!([]));
}

fn every_thread_can_be_read(world: &OldWorld) {
    for (name, status) in world.statuses() {
        let expected = name.split('_').any(|word| word == status);
        assert!(expected, "{name} is {status}");
    }
    let opened = json!({ "opened": world.threads.len(), "bad": [] });
    assert_eq!(world.json(&["check", "--json"]), opened);
    for (name, thread) in &world.threads {
        let shown = world.json(&["show", thread, "--json"]);
        assert!(shown["values"].is_object(), "{name}: {shown}");
        let is_paused = name.contains("paused");
        let questions = shown["questions"].as_array().unwrap().len();
        assert_eq!(questions, usize::from(is_paused), "{name}: {shown}");
        let history = world.json(&["history", thread, "--json"]);
        assert!(history.as_array().unwrap().len() > 1, "{name}: {history}");
        let trace = world.archie("none", &["trace", thread], "");
        assert_eq!(trace.code(), Some(0), "{name}: {trace:?}");
    }
}

fn analyses_end_with_their_files(world: &OldWorld) {
    let followup =
        json!({ "at": "followup", "expect": "yes, per customer", "text": "One queue. Approved?" });
    let last = json!({ "at": "final", "json": {
        "assumptions": [], "components": [{ "claim": "A queue." }], "alternatives": [], "open_questions": [],
        "decisions": [{ "claim": "One machine is enough.", "file": "b.txt", "line": 1, "quote": "We have one machine" }]
    } });
    let answers = "yes, per customer\nSOLUTION APPROVED\n";
    let out = world.finish("analyze_paused", &json!([followup, last]), answers);
    assert!(out.contains("Agent: Is ordering required?"), "{out}");
    assert_eq!(world.asked("analyze_paused"), ["followup", "final"]);
    // The call that was paid for counts: without a raise, the next one is not made.
    let name = "analyze_paused_at_budget";
    let more = world.archie(
        name,
        &["--budget", "1c", "resume", &world.threads[name]],
        "",
    );
    assert_eq!(more.code(), Some(3), "{more:?}");
    assert!(world.asked(name).is_empty(), "{more:?}");
    let answers = "raise 5\nSOLUTION APPROVED\n";
    let out = world.finish_with(&["--budget", "1c"], name, &json!([followup, last]), answers);
    assert!(out.contains("raise [BY] or stop: raise 5"), "{out}");
    assert_eq!(world.asked(name), ["followup", "final"]);
    world.finish("analyze_failed", &json!([last]), "");
    assert_eq!(world.asked("analyze_failed"), ["final"]);
    // The answer was stored before the process died; nobody has to give it again.
    let replies = json!([followup, last]);
    world.finish("analyze_running", &replies, "SOLUTION APPROVED\n");
    assert_eq!(world.asked("analyze_running"), ["followup", "final"]);
    for name in [
        "analyze_paused",
        "analyze_paused_at_budget",
        "analyze_failed",
        "analyze_running",
    ] {
        let result = world.read(&format!("{name}/analysis_result.md"));
        let checked = "  - supported: `b.txt:1` says \"We have one machine\"\n";
        assert!(result.contains(checked), "{name}: {result}");
    }
}

fn workbooks_end_with_their_changes(world: &OldWorld) {
    let count = "counts = table('Sales').groupby('Product').size()
ws = workbook.create_sheet('Counts')
ws.append(['Product', 'Count'])
for name, count in counts.items():
    ws.append([name, int(count)])";
    let count = json!({ "at": "planner_node", "expect": "KeyError: 'product'", "tool_calls": [
        { "name": "PythonInterpreter", "args": { "code": count } }
    ] });
    let end = json!({ "at": "planner_node", "expect": "changed: Counts!A1:B5", "text": "Finish: There are four products." });
    for (name, replies) in [
        ("sheet_paused", json!([])),
        ("sheet_failed", json!([count, end])),
        ("sheet_running", json!([end])),
    ] {
        let before = fs::read(world.path(&format!("{name}/sales.xlsx"))).unwrap();
        world.finish(name, &replies, "y\n");
        let asked = vec!["planner_node"; replies.as_array().unwrap().len()];
        assert_eq!(world.asked(name), asked, "{name}");
        let saved = File::open(world.path(&format!("{name}/out/workbook_new.xlsx"))).unwrap();
        let counts = Xlsx::new(saved).unwrap().worksheet_range("Counts").unwrap();
        let rows: Vec<String> = (counts.rows())
            .map(|row| format!("{} {}", row[0], row[1]))
            .collect();
        let expected = ["Product Count", "Coffee 1", "Milk 1", "Tea 2", "Water 1"];
        assert_eq!(rows, expected, "{name}");
        let after = fs::read(world.path(&format!("{name}/sales.xlsx"))).unwrap();
        assert_eq!(before, after, "{name}: the person's own file is as it was");
    }
}

fn documentation_ends_with_its_pages(world: &OldWorld) {
    let refined = json!({
        "at": "file-structure-Refinement-1", "expect": "What does a cart hold?", "text": "A `Cart` is in `src/cart.rs`. Tests are in the folder tests."
    });
    let scores = json!({ "completeness": 90, "clarity": 90, "depth": 90, "accuracy": 90 });
    let scored = json!({ "at": "file-structure-EvaluateClarity", "json": scores });
    for (name, answers) in [
        ("docs_paused", "accept\n"),
        ("docs_failed", ""),
        ("docs_running", ""),
    ] {
        let out = world.finish(name, &json!([refined, scored]), answers);
        assert!(
            out.contains("file-structure  62 → Q3 → 90 ✓ 1 iteration\n"),
            "{name}: {out}"
        );
        // The agent that was done before is done.
        let asked = world.asked(name);
        let expected = [
            "file-structure-Refinement-1",
            "file-structure-EvaluateClarity",
        ];
        assert_eq!(asked, expected, "{name}");
        let page = world.read(&format!("{name}/.arch-docs/file-structure.md"));
        let linked = "A `Cart` is in [`src/cart.rs`](../src/cart.rs).";
        assert!(page.contains(linked), "{name}: {page}");
        let other = world.read(&format!("{name}/.arch-docs/dependency-analyzer.md"));
        assert!(other.contains("| `serde` | 1.0 |"), "{name}: {other}");
    }
}

fn api_calls_end_and_no_change_is_made_twice(world: &OldWorld) {
    let favorite = "POST /v1/tracks/D7KyD/favorites?user_id=nlGNe";
    world.finish("atris_paused", &json!([]), "accept\n");
    assert_eq!(world.api.lines(), [favorite]);
    for name in ["atris_failed", "atris_running"] {
        let replies = json!([{ "at": "extract_params_node", "json": { "track_id": "" } }]);
        let out = world.finish(name, &replies, "D7KyD\n");
        assert!(out.contains("\"Track 1\" by Artist 1"), "{name}: {out}");
        assert_eq!(world.asked(name), ["extract_params_node"]);
    }
    // Its process died while the change was under way: a person knows whether it was made.
    let out = world.finish("atris_running_in_doubt", &json!([]), "happened\n");
    assert!(out.contains("/v1/tracks/LOST/favorites"), "{out}");
    let show = "GET /v1/tracks/D7KyD";
    assert_eq!(world.api.lines(), [favorite, show, show]);
}

fn a_watch_compares_with_what_it_saw_before(world: &OldWorld) {
    let name = "atris_watch_paused";
    let thread = &world.threads[name];
    let look = ["atris", "watch", "--resume", thread, "--looks", "1"];
    let ran = world.archie(name, &look, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(ran.out(), "+ Track 11 (D7Ky11)\n- Track 1 (D7Ky1)\n");
    let out = world.finish(name, &json!([]), "stop\n");
    assert!(out.contains("stopped after 2 looks"), "{out}");
}

fn mails_end_and_none_is_sent_twice(world: &OldWorld) {
    let draft = json!({ "at": "llm_call", "tool_calls": [
        { "name": "send_email_tool", "args": { "response_text": "On Friday." } }
    ] });
    let done =
        json!({ "at": "llm_call", "tool_calls": [{ "name": "Done", "args": { "done": true } }] });
    let learn =
        json!({ "at": "learn", "json": { "line": "Name a day and a time.", "replaces": 0 } });
    // The mail was out when the process died. Once it is taken from the outbox, only the record of the call says so.
    let sent = world.take_sent("mail_running");
    assert!(
        sent.len() == 1 && sent[0].contains("Friday noon."),
        "{sent:?}"
    );
    for (name, replies, answers, text) in [
        (
            "mail_paused",
            json!([done]),
            "accept\n",
            Some("Next week, perhaps."),
        ),
        (
            "mail_failed",
            json!([draft, done]),
            "accept\n",
            Some("On Friday."),
        ),
        ("mail_running", json!([learn, done]), "", None),
    ] {
        world.finish(name, &replies, answers);
        let labels = replies.as_array().unwrap().iter();
        let labels: Vec<_> = labels.map(|reply| reply["at"].as_str().unwrap()).collect();
        assert_eq!(world.asked(name), labels, "{name}");
        let source = format!("{name}/mbox");
        let again = world.archie(name, &["mail", "ingest", &source, "--include-read"], "");
        assert!(again.out().contains("(taken in before)"), "{again:?}");
        let sent = world.take_sent(name);
        assert_eq!(sent.len(), usize::from(text.is_some()), "{name}: {sent:?}");
        for (mail, text) in sent.iter().zip(text) {
            let reply_to = format!("In-Reply-To: <{name}@example.com>");
            for part in [text, "To: bob@example.com", &reply_to] {
                assert!(mail.contains(part), "{name}: {mail}");
            }
        }
    }
}
