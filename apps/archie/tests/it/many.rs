//! Ten thousand threads that wait, in one file: lists and the prompt are there at once, and an idle shell is small.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archie::agents::AGENTS;
use archie::app::App;
use serde_json::json;
use superstep::checkpoint::Metadata;
use superstep_llm::Script;
use superstep_sqlite::Sqlite;

use crate::kit::{Workdir, settings};

async fn park(workdir: &Workdir, threads: usize) {
    std::fs::create_dir_all(workdir.path("home")).unwrap();
    let path = workdir.path("home/threads.db");
    let settings = settings(&workdir.path("home"));
    let store = Sqlite::open(&path).unwrap();
    let home = App::over(settings, store.clone(), Arc::new(store), AGENTS).unwrap();
    let reply = json!({ "at": "initial", "text": "Is ordering required?" });
    let script = json!({ "replies": vec![reply; threads] });
    let script = Script::parse("same", &script.to_string()).unwrap();
    home.models.put("script:same", Arc::new(script));
    let agent = home.agent("analyze").unwrap().clone();
    let mut parking = tokio::task::JoinSet::new();
    for number in 0..threads {
        let id = uuid::Uuid::now_v7().to_string();
        let known = Metadata::from([("title".to_owned(), json!(format!("Question {number}")))]);
        let thread = agent.thread(&home.runtime, &id, known).unwrap();
        parking.spawn(async move {
            let input = json!({ "userInput": "analyze: Choose", "modelName": "script:same" });
            thread.start_or_recover(input).await.unwrap();
        });
        if parking.len() >= 64 {
            parking.join_next().await.unwrap().unwrap();
        }
    }
    parking.join_all().await;
}

/// How long a command takes, at best: what else the machine does is not the program's.
fn at_best(workdir: &Workdir, args: &[&str]) -> Duration {
    let once = || {
        let begun = Instant::now();
        let ran = workdir.run(args, "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        begun.elapsed()
    };
    (0..5).map(|_| once()).min().unwrap()
}

/// A shell in a terminal: how long until its prompt is there, and what it has in memory then, without the pages of a program
/// that is large because it can be debugged (`cargo xtask bench archie` counts them, too).
fn prompt(workdir: &Workdir) -> (Duration, u64) {
    let program = workdir.command();
    let mut script = Command::new("script");
    script
        .args(["-q", "-e", "-c"])
        .arg(program.get_program())
        .arg("/dev/null");
    script.current_dir(workdir.path("")).env_clear();
    let variables = program
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    script.envs(variables).env("TERM", "xterm");
    let begun = Instant::now();
    let mut shell = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = shell.stdout.take().unwrap();
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    while !seen.contains("archie> ") {
        let count = out.read(&mut bytes).unwrap();
        assert!(count > 0, "it ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let took = begun.elapsed();
    let children = format!("/proc/{0}/task/{0}/children", shell.id());
    let children = std::fs::read_to_string(children).unwrap();
    // `script` has a shell in between on some systems.
    let mut pid = children.split_whitespace().next().unwrap().to_owned();
    while let Some(child) = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap()
        .split_whitespace()
        .next()
    {
        pid = child.to_owned();
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    let memory = memory
        .split_whitespace()
        .next()
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1_000;
    shell.stdin.take().unwrap().write_all(b"exit\r").unwrap();
    drop(out);
    shell.wait().unwrap();
    (took, memory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_ten_thousand_waiting_threads_everything_is_there_at_once() {
    let workdir = Workdir::with_model("script:same");
    park(&workdir, 10_000).await;
    let (inbox, threads) = (
        at_best(&workdir, &["inbox"]),
        at_best(&workdir, &["threads"]),
    );
    let (prompt, memory) = (0..5).map(|_| prompt(&workdir)).min().unwrap();
    eprintln!("inbox {inbox:?}, threads {threads:?}, prompt {prompt:?}, idle shell {memory} MB");
    assert!(inbox < Duration::from_millis(200), "{inbox:?}");
    assert!(threads < Duration::from_millis(200), "{threads:?}");
    assert!(prompt < Duration::from_millis(100), "{prompt:?}");
    assert!(memory < 30, "{memory} MB");
    // A thread is found by the beginning of its id, too.
    let all = workdir.json(&["threads", "--limit", "10000", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 10_000);
    let oldest = all[9_999]["thread"].as_str().unwrap();
    let shown = workdir.json(&["show", oldest, "--json"]);
    assert_eq!(shown["status"], "paused");
}
