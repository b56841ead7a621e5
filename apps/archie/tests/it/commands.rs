//! Every command: its help, its output for people, its JSON.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};
use superstep_conformance::services;

use crate::kit::{Workdir, same};

fn paused() -> Workdir {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "text": "Approved?"}
    ]));
    workdir.run(
        &[
            "analyze",
            "--query",
            "Choose a queue",
            "--inputs",
            "./notes",
        ],
        "",
    );
    workdir
}

#[test]
fn help_teaches() {
    let workdir = paused();
    let out = workdir.run(&["--help"], "").out();
    for command in [
        "analyze", "resume", "threads", "inbox", "fork", "diff", "trace", "graph", "doctor", "demo",
    ] {
        assert!(
            out.contains(&format!("  {command} ")),
            "{command} is missing:\n{out}"
        );
        let own = workdir.run(&[command, "--help"], "");
        assert_eq!(own.code(), Some(0));
        assert!(own.out().contains("Usage: archie"), "{}", own.out());
    }
}

#[test]
fn a_wrong_command_line_is_2() {
    let workdir = paused();
    assert_eq!(workdir.run(&["analyse"], "").code(), Some(2));
    assert_eq!(workdir.run(&["threads", "--status"], "").code(), Some(2));
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let workdir = paused();
    let ran = workdir.run(&["resume", "nothing"], "");
    assert_eq!(ran.code(), Some(1));
    assert!(
        ran.err()
            .contains("no thread begins with `nothing`; `archie threads` lists them"),
        "{ran:?}"
    );
    let ran = workdir.run(&["analyze", "--query", "x", "--inputs", "nowhere"], "");
    assert!(
        ran.err().contains("there is no folder `nowhere`"),
        "{ran:?}"
    );
    let ran = workdir.run(
        &[
            "--model", "gpt", "analyze", "--query", "x", "--inputs", "notes",
        ],
        "",
    );
    assert!(ran.err().contains("`gpt` is not a model"), "{ran:?}");
}

#[test]
fn a_paused_thread_is_listed_shown_and_answered_from_the_inbox() {
    let workdir = paused();
    let home = workdir.path("home");
    insta::assert_snapshot!(same(&workdir.run(&["threads"], "").out(), &home), @"ITEM  analyze  waiting for you  just now  Choose a queue");
    insta::assert_snapshot!(same(&workdir.run(&["inbox"], "").out(), &home), @r"
    ITEM  analyze  Choose a queue: Is ordering required?
    Summaries only; `archie inbox ID` shows an item in full and takes the answer.
    ");
    let inbox = workdir.json(&["inbox", "--json"]);
    assert_eq!(
        inbox[0]["request"],
        json!({"query": "Is ordering required?"})
    );
    let ran = workdir.run(&["inbox", &workdir.items()[0], "yes"], "");
    let next = format!(
        "answered, and there is a new question: `archie inbox {}`\n",
        workdir.items()[0]
    );
    assert_eq!(ran.out(), next, "{ran:?}");
    let all = workdir.json(&["inbox", "--all", "--json"]);
    let first = all
        .as_array()
        .unwrap()
        .iter()
        .find(|question| question["answer"] == "yes")
        .unwrap();
    assert_eq!(first["answeredBy"], "ada");
    let late = workdir.run(&["inbox", first["id"].as_str().unwrap(), "no"], "");
    assert_eq!(late.code(), Some(1), "{late:?}");
}

#[test]
fn a_graph_is_drawn_in_three_ways() {
    let workdir = paused();
    insta::assert_snapshot!(workdir.run(&["graph", "analyze"], "").out(), @r"
    analyze
      [__start__] ─▶ __end__ │ ANALYSIS_PREPARE │ ECHO │ READ_NOTES
      [ANALYSIS_INTERRUPT] ─▶ ANALYSIS_PREPARE
      [ANALYSIS_PREPARE] ─▶ __end__ │ ANALYSIS_INTERRUPT │ ANALYSIS_TOOLS │ SAVE_RESULT
      [ANALYSIS_TOOLS] ─▶ ANALYSIS_PREPARE
      [ECHO] ─▶ __end__
      [READ_NOTES] ─▶ ANALYSIS_PREPARE
      [SAVE_RESULT] ─▶ __end__
      [__end__]
    ");
    assert!(
        workdir
            .run(&["graph", "analyze", "--mermaid"], "")
            .out()
            .contains("ANALYSIS_PREPARE")
    );
    let drawn = workdir.json(&["graph", "analyze", "--json"]);
    assert_eq!(drawn["name"], "analyze");
}

#[test]
fn a_thread_moves_to_another_home() {
    let workdir = paused();
    let id = workdir.thread();
    let file = workdir.path("thread.bin");
    let file = file.to_str().unwrap();
    assert_eq!(workdir.run(&["export", &id, file], "").code(), Some(0));
    let ran = workdir.run(&["delete", &id], "n\n");
    assert!(ran.out().contains("nothing was deleted"), "{ran:?}");
    assert_eq!(workdir.run(&["delete", &id, "--yes"], "").code(), Some(0));
    assert_eq!(workdir.json(&["threads", "--json"]), json!([]));
    let other = paused().with_environment("ARCHIE_HOME", workdir.path("other").to_str().unwrap());
    let ran = other.run(&["import", file], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(other.thread(), id);
    assert_eq!(
        other.json(&["check", "--json"]),
        json!({"opened": 1, "bad": []})
    );
}

#[test]
fn several_threads_are_deleted_after_one_question() {
    let workdir = paused();
    for query in ["Choose a database", "Choose a cloud"] {
        workdir.run(&["analyze", "--query", query, "--inputs", "./notes"], "");
    }
    let statuses = |workdir: &Workdir| {
        let threads = workdir.json(&["threads", "--json"]);
        let status = |row: &Json| row["status"].as_str().unwrap().to_owned();
        let mut all: Vec<_> = threads.as_array().unwrap().iter().map(status).collect();
        all.sort_unstable();
        all
    };
    // The script has a reply for the first one only.
    assert_eq!(statuses(&workdir), ["failed", "failed", "paused"]);
    let ran = workdir.run(&["delete", "--status", "failed"], "n\n");
    assert!(
        ran.out()
            .contains("Delete these 2 threads permanently? [y/N]"),
        "{ran:?}"
    );
    assert!(ran.out().contains("Choose a cloud"), "{ran:?}");
    assert!(!ran.out().contains("Choose a queue"), "{ran:?}");
    assert_eq!(statuses(&workdir).len(), 3);
    let ran = workdir.run(&["delete", "--status", "failed"], "y\n");
    assert!(ran.out().contains("deleted 2 threads"), "{ran:?}");
    assert_eq!(statuses(&workdir), ["paused"]);
    for (args, left) in [
        (["--older-than", "1d"], 1),
        (["--agent", "sheet"], 1),
        (["--older-than", "1ms"], 0),
    ] {
        let ran = workdir.run(&["delete", args[0], args[1], "--yes"], "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        assert_eq!(statuses(&workdir).len(), left, "{args:?}: {ran:?}");
    }
    assert_eq!(workdir.run(&["delete"], "").code(), Some(2));
    let both = ["delete", "01a1", "--status", "failed"];
    assert_eq!(workdir.run(&both, "").code(), Some(2));
}

#[test]
fn threads_are_deleted_by_their_ids() {
    let workdir = paused();
    workdir.run(&["analyze", "--query", "y", "--inputs", "./notes"], "");
    let threads = workdir.json(&["threads", "--json"]);
    let ids = [0, 1].map(|at: usize| threads[at]["thread"].as_str().unwrap());
    // One that does not exist: nothing is deleted.
    let ran = workdir.run(&["delete", ids[0], "nothing", "--yes"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert_eq!(workdir.json(&["threads", "--json"]), threads);
    let ran = workdir.run(&["delete", ids[0], ids[1], ids[0], "--yes"], "");
    assert!(ran.out().contains("deleted 2 threads"), "{ran:?}");
    assert_eq!(workdir.json(&["threads", "--json"]), json!([]));
}

#[test]
fn the_database_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let workdir = paused();
    let mode = |path: &str| {
        std::fs::metadata(workdir.path(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("home"), 0o700);
    assert_eq!(mode("home/threads.db"), 0o600);
}

#[test]
fn the_demo_passes_offline() {
    let workdir = paused().with_environment("ARCHIE_PYTHON", &services::program("sandbox"));
    let demo = workdir.json(&["demo", "--json"]);
    assert_eq!(demo["passed"], true, "{demo}");
    let mut agents: Vec<_> = demo["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scenario| {
            (
                scenario["agent"].as_str().unwrap(),
                scenario["passed"] == true,
            )
        })
        .collect();
    agents.sort_unstable();
    let all = ["analyze", "atris", "docs", "email_assistant", "sheet"];
    assert_eq!(agents, all.map(|agent| (agent, true)), "{demo}");
}

/// The demo ends with the address of Studio, where its threads are, one of which waits for an answer and one failed.
#[test]
fn the_demo_ends_with_the_address_of_studio() {
    let workdir = paused().with_environment("ARCHIE_PYTHON", &services::program("sandbox"));
    let mut command = workdir.command();
    command.args(["demo", "--studio"]).stdout(Stdio::piped());
    let mut demo = KilledAtEnd(command.spawn().unwrap());
    let printed = BufReader::new(demo.0.stdout.take().unwrap());
    let mut lines = printed.lines().map_while(Result::ok);
    let page = lines.find_map(|line| line.strip_prefix("Studio at ").map(str::to_owned));
    let page = page.expect("the address of Studio");
    let address = page.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/studio/").unwrap();
    let call = |request: &str, body: &str| -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close");
        let sent = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(sent.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{request}: {reply}");
        reply.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let shown = call("GET /studio/", "");
    assert!(shown.contains("<title>Superstep Studio</title>"), "{shown}");
    let inbox: Json = serde_json::from_str(&call("GET /superstep/inbox", "")).unwrap();
    assert_eq!(inbox.as_array().unwrap().len(), 1, "{inbox}");
    assert!(inbox.to_string().contains("Thursday at noon suits me."));
    let threads = call("POST /threads/search", r#"{"limit": 100}"#);
    let threads: Json = serde_json::from_str(&threads).unwrap();
    let named = |graph: &str, status: &str| {
        let threads = threads.as_array().unwrap().iter();
        let is_one =
            |thread: &&Json| thread["metadata"]["graph_id"] == graph && thread["status"] == status;
        threads.filter(is_one).count()
    };
    for agent in ["analyze", "atris", "docs", "sheet"] {
        assert_eq!(named(agent, "idle"), 1, "{agent}: {threads}");
    }
    assert_eq!(named("email_assistant", "idle"), 3, "{threads}");
    assert_eq!(named("email_assistant", "interrupted"), 1, "{threads}");
    assert_eq!(named("analyze", "error"), 1, "{threads}");
    let interrupted = Command::new("kill")
        .args(["-INT", &demo.0.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    assert!(demo.0.wait().unwrap().success());
}

/// A process that does not outlive its test.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder with a program `uv` that does as `script` says, and a cache folder, both readable by the user of the sandbox.
fn with_uv(script: &str) -> (tempfile::TempDir, Workdir) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(folder.path());
    let uv = folder.path().join("uv");
    std::fs::write(&uv, format!("#!/bin/sh\n{script}\n")).unwrap();
    open(&uv);
    let workdir = paused()
        .with_environment(
            "PATH",
            &format!("{}:/usr/bin:/bin", folder.path().display()),
        )
        .with_environment("XDG_CACHE_HOME", folder.path().to_str().unwrap());
    (folder, workdir)
}

#[test]
fn the_demo_makes_a_python_environment_once() {
    // In the place of uv: the environment it makes hands over to a Python that has the modules.
    let uv = format!(
        r#"echo "$@" >> "$(dirname "$0")/calls"
case "$1" in
venv) mkdir -p "$3/bin"; printf '#!/bin/sh\nexec {} "$@"\n' > "$3/bin/python"; chmod 755 "$3/bin/python" ;;
esac"#,
        services::program("sandbox")
    );
    let (folder, workdir) = with_uv(&uv);
    for _ in 0..2 {
        let ran = workdir.run(&["demo", "--json"], "");
        let demo: Json = serde_json::from_str(&ran.out()).unwrap();
        assert_eq!(demo["passed"], true, "{ran:?}");
        assert_eq!(demo["scenarios"].as_array().unwrap().len(), 5);
    }
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    let calls: Vec<_> = calls
        .lines()
        .filter(|line| !line.starts_with("--version"))
        .collect();
    assert_eq!(calls.len(), 2, "made once, and installed once: {calls:?}");
    assert!(
        calls[0].starts_with("venv ") && calls[1].ends_with("pandas openpyxl matplotlib"),
        "{calls:?}"
    );
}

#[test]
fn a_demo_that_cannot_run_sheet_fails_and_says_what_to_do() {
    let (_folder, workdir) =
        with_uv(r#"case "$1" in pip) echo 'error: failed to fetch pandas' >&2; exit 2 ;; esac"#);
    let ran = workdir.run(&["demo", "--json"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    let demo: Json = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(demo["passed"], false);
    let sheet = &demo["scenarios"][4];
    assert_eq!(
        (&sheet["agent"], &sheet["passed"]),
        (&json!("sheet"), &json!(false))
    );
    let why = sheet["why"].as_str().unwrap();
    for words in [
        "failed to fetch",
        "connection to the Python registry",
        "ARCHIE_PYTHON",
    ] {
        assert!(why.contains(words), "{words:?} is not in {why}");
    }
    assert!(ran.err().contains("FAIL  sheet: "), "{ran:?}");
    assert!(ran.err().contains("sheet: installing pandas"), "{ran:?}");
}

#[test]
fn the_doctor_tells_what_is_set_and_never_to_what() {
    let workdir = paused().with_environment("OPENAI_API_KEY", "sk-planted-secret");
    let ran = workdir.run(&["doctor", "--bundle", "bundle.json", "--json"], "");
    let bundle = std::fs::read_to_string(workdir.path("bundle.json")).unwrap();
    assert!(!bundle.contains("planted") && !ran.out().contains("planted"));
    let report: Json = serde_json::from_str(&bundle).unwrap();
    assert_eq!(report["model"]["ok"], true, "{report}");
    let key = report["environment"]
        .as_array()
        .unwrap()
        .iter()
        .find(|variable| variable["name"] == "OPENAI_API_KEY");
    assert_eq!(key.unwrap()["set"], true);
    let none = Workdir::with_model("").run(&["doctor"], "");
    assert_eq!(none.code(), Some(1));
    assert!(none.out().contains("no model is chosen"), "{none:?}");
}

#[test]
fn without_a_model_the_doctor_says_which_answer_here() {
    let workdir = Workdir::with_model("")
        .with_environment("OPENAI_BASE_URL", &services::url("model"))
        .with_environment("OLLAMA_HOST", "127.0.0.1:9");
    let ran = workdir.run(&["doctor"], "");
    assert!(
        ran.out()
            .contains("run `archie setup` to choose one (available here: openai:smollm2-135m)"),
        "{ran:?}"
    );
    let nothing = Workdir::with_model("")
        .with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9");
    let ran = nothing.run(&["doctor"], "");
    assert!(ran.out().contains("none was found here"), "{ran:?}");
}

#[test]
fn the_doctor_reports_on_a_machine_without_root_certificates() {
    let workdir = Workdir::with_model("")
        .with_environment("SSL_CERT_FILE", "/dev/null")
        .with_environment("SSL_CERT_DIR", "/dev/null");
    let ran = workdir.run(&["doctor"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.out().contains("none was found here"), "{ran:?}");
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let workdir = paused();
    let ran = workdir.run(&["backup", "copy.db"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let copied = workdir.json(&["--store", "sqlite:copy.db", "threads", "--json"]);
    assert_eq!(copied[0]["thread"], workdir.thread());
    let again = workdir.run(&["backup", "copy.db"], "");
    assert_eq!(again.code(), Some(1));
    assert!(
        again.err().contains("`copy.db` already exists"),
        "{again:?}"
    );
}

#[test]
fn the_size_of_threads_is_summed_up() {
    let workdir = paused();
    let by = |what: &str| workdir.json(&["size", "--by", what, "--json"]);
    let (threads, graphs, tenants) = (by("thread"), by("graph"), by("tenant"));
    assert_eq!(threads[0]["thread"], workdir.thread());
    assert_eq!(graphs[0]["graph"], "analyze");
    assert_eq!(tenants[0]["tenant"], "");
    for rows in [&threads, &graphs, &tenants] {
        assert_eq!(rows.as_array().unwrap().len(), 1);
        assert_eq!(rows[0]["threads"], 1);
        assert_eq!(rows[0]["bytes"], threads[0]["bytes"]);
    }
    assert!(threads[0]["entries"]["bytes"].as_u64() > Some(0));
    assert!(threads[0]["interrupts"]["count"].as_u64() > Some(0));
    let shown = workdir.run(&["size"], "");
    assert!(shown.out().contains("analyze  1 thread"), "{shown:?}");
}

#[test]
fn any_agent_is_started_with_json() {
    let workdir = Workdir::scripted(&json!([{"at": "initial", "text": "Is ordering required?"}]));
    let input = json!({ "userInput": "analyze: x", "modelName": "script:script.json" }).to_string();
    let ran = workdir.run(&["run", "analyze", "--input", &input], "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let ran = workdir.run(&["run", "analyze", "--input", "{\"userInptu\": 1}"], "");
    assert!(ran.err().contains("userInptu"), "{ran:?}");
    let ran = workdir.run(&["run", "nobody"], "");
    assert!(
        ran.err()
            .contains("there is no agent `nobody`; there are analyze"),
        "{ran:?}"
    );
}

#[test]
fn a_new_project_says_what_to_type() {
    let workdir = paused();
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let ran = workdir.run(&["new", "greeter", "--from", checkout], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out()
            .contains("cargo run -- --model script:hello.json run greeter"),
        "{ran:?}"
    );
    let manifest = std::fs::read_to_string(workdir.path("greeter/Cargo.toml")).unwrap();
    assert!(manifest.contains("apps/archie"), "{manifest}");
    let ran = workdir.run(&["new", "--lib", "plain", "--from", checkout], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let manifest = std::fs::read_to_string(workdir.path("plain/Cargo.toml")).unwrap();
    assert!(
        manifest.contains("crates/superstep-sqlite") && !manifest.contains("archie = "),
        "{manifest}"
    );
    for wrong in ["greeter", "Greeter", "../x", "1st"] {
        assert_eq!(workdir.run(&["new", wrong], "").code(), Some(1), "{wrong}");
    }
}
