//! A person's folder, and the program run in it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use archie::cli::settings::{EncryptionSettings, Engine, Settings, Store};
use serde_json::Value as Json;

/// A home and a folder of notes of its own.
pub(crate) struct Workdir {
    folder: tempfile::TempDir,
    model: String,
    environment: Vec<(String, String)>,
}

impl Workdir {
    /// With a script of these replies, as JSON.
    pub(crate) fn scripted(replies: &Json) -> Self {
        let workdir = Self::with_model("script:script.json");
        let script = serde_json::json!({ "replies": replies });
        fs::write(workdir.path("script.json"), script.to_string()).unwrap();
        workdir
    }

    pub(crate) fn with_model(model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        fs::create_dir(&notes).unwrap();
        fs::write(
            notes.join("a.md"),
            "# Orders\n\nTen thousand orders a day.\n",
        )
        .unwrap();
        fs::write(notes.join("b.txt"), "We have one machine.\n").unwrap();
        fs::write(notes.join("c.png"), b"\x89PNG").unwrap();
        Self {
            folder,
            model: model.to_owned(),
            environment: Vec::new(),
        }
    }

    pub(crate) fn with_environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Another folder with the same content.
    pub(crate) fn copy(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let content = self.path(".");
        let copied = Command::new("cp")
            .arg("-a")
            .arg(content)
            .arg(folder.path())
            .status();
        assert!(copied.unwrap().success());
        Self {
            folder,
            model: self.model.clone(),
            environment: self.environment.clone(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archie"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("ARCHIE_HOME", self.path("home"))
            .env("ARCHIE_MODEL", &self.model)
            .env("ARCHIE_PERSON", "ada")
            .env("SUPERSTEP_SCRIPT_LEDGER", self.path("ledger"))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// Runs it with these arguments and this on its input.
    pub(crate) fn run(&self, args: &[&str], input: &str) -> Ran {
        let mut command = self.command();
        command.args(args);
        Ran::of(command, input)
    }

    /// Starts it with this on its input, and does not wait for its end.
    pub(crate) fn start(&self, args: &[&str], input: &str) -> Child {
        let mut command = self.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        // It may have ended before it read its input.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        process
    }

    /// Runs it, and kills it with `kill -9` after a while. Says whether it was killed.
    pub(crate) fn run_and_kill(&self, args: &[&str], input: &str, after: Duration) -> bool {
        let mut process = self.start(args, input);
        let begun = Instant::now();
        while process.try_wait().unwrap().is_none() {
            if begun.elapsed() >= after {
                process.kill().unwrap();
                process.wait().unwrap();
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    pub(crate) fn json(&self, args: &[&str]) -> Json {
        let ran = self.run(args, "");
        serde_json::from_str(&ran.out())
            .unwrap_or_else(|_| panic!("{args:?} gave no JSON: {ran:?}"))
    }

    /// The only thread.
    pub(crate) fn thread(&self) -> String {
        let threads = self.json(&["threads", "--json"]);
        threads[0]["thread"].as_str().unwrap().to_owned()
    }

    /// The short ids of the open items, oldest first.
    pub(crate) fn items(&self) -> Vec<String> {
        let items = self.json(&["inbox", "--limit", "1000", "--json"]);
        let ids = items.as_array().unwrap().iter();
        ids.map(|item| item["short_id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// How often the model was asked, by label.
    pub(crate) fn asked(&self, label: &str) -> usize {
        let ledger = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        let lines = ledger
            .lines()
            .map(|line| serde_json::from_str::<Json>(line).unwrap());
        lines
            .filter(|line| line["request"]["label"] == label)
            .count()
    }

    /// What the model was asked under a label, in order: each request as JSON.
    pub(crate) fn requests(&self, label: &str) -> Vec<Json> {
        let ledger = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        let lines = ledger
            .lines()
            .map(|line| serde_json::from_str::<Json>(line).unwrap());
        lines
            .map(|line| line["request"].clone())
            .filter(|request| request["label"] == label)
            .collect()
    }

    pub(crate) fn result(&self) -> String {
        fs::read_to_string(self.path("notes/analysis_result.md")).unwrap()
    }

    pub(crate) fn notes(&self) -> PathBuf {
        self.path("notes")
    }
}

#[derive(Debug)]
pub(crate) struct Ran(Output);

impl Ran {
    /// Runs a command to its end with this on its input.
    pub(crate) fn of(mut command: Command, input: &str) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // It may have died before it read everything, which is what some tests are about.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        Self(process.wait_with_output().unwrap())
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }
}

/// Without ids and times, which differ each time.
pub(crate) fn same(text: &str, home: &Path) -> String {
    let text = text.replace(&home.display().to_string(), "HOME");
    let mut clean = String::new();
    for word in text.split_inclusive([' ', '\n', '`', '"', '(']) {
        let bare = word.trim_end_matches([' ', '\n', '`', '"', '(', ')', '.', ',', ':']);
        let is_id = bare.len() == 36 && bare.chars().filter(|c| *c == '-').count() == 4;
        let is_date = bare.len() == 10
            && bare.starts_with("20")
            && bare.chars().filter(|c| *c == '-').count() == 2;
        let is_hex = bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        // The beginning of an id, with a dash.
        let is_short_id = bare.len() > 9
            && bare.as_bytes()[8] == b'-'
            && bare
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        let is_time = bare.len() == 8 && bare.chars().filter(|c| *c == ':').count() == 2;
        let name = if is_id {
            "ID"
        } else if is_short_id {
            "SHORT"
        } else if is_hex && bare.len() == 16 {
            "DIGEST"
        } else if is_hex && (6..9).contains(&bare.len()) {
            "ITEM"
        } else if is_date {
            "DATE"
        } else if is_time {
            "TIME"
        } else {
            bare
        };
        clean.push_str(name);
        clean.push_str(&word[bare.len()..]);
    }
    clean
}

/// What a process goes by whose everything is in one folder.
pub(crate) fn settings(folder: &Path) -> Settings {
    Settings {
        model: None,
        models: Vec::new(),
        openai_base_url: None,
        store: Store::Sqlite(folder.join("threads.db")),
        engine: Engine::Local,
        encryption: EncryptionSettings::default(),
        redis: None,
        budget: None,
        home: folder.to_owned(),
        files: folder.join("files"),
        prompts: None,
        mcp: Vec::new(),
        web: None,
        person: "ada".to_owned(),
        file: folder.join("settings.json"),
    }
}

/// A folder with a script of these replies, for a model with this context.
pub(crate) fn with_context(context_size: u64, replies: &Json) -> Workdir {
    let workdir = Workdir::with_model("script:script.json");
    let script = serde_json::json!({ "context_size": context_size, "replies": replies });
    fs::write(workdir.path("script.json"), script.to_string()).unwrap();
    workdir
}
