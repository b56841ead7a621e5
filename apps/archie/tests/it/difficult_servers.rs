//! Every agent with the model servers that people have: one slot, slow, dying, or without forms. Each run ends, or stops with a
//! message that a person can act on, and no answer is paid for twice.

use std::fs;
use std::time::Duration;

use crate::atris::acceptance::point;
use crate::atris::{Server, server};
use crate::docs::kit::repository;
use crate::kit::{Ran, Workdir};
use crate::mail::kit::{mail, mbox};
use crate::model_server::{Fault, ModelServer};
use crate::sheet::kit::{python, sales};

/// A folder of a person whose model is on this server.
fn workdir(server: &ModelServer) -> Workdir {
    Workdir::with_model("openai:m").with_environment("OPENAI_BASE_URL", &server.url)
}

fn faults() -> [Fault; 4] {
    let is_long = std::env::var_os("SUPERSTEP_LONG").is_some();
    let pause = if is_long { 4_000 } else { 300 };
    [
        Fault::OneSlot,
        Fault::Slow(Duration::from_millis(pause)),
        Fault::DiesInMidStream,
        Fault::IgnoresForms,
    ]
}

/// Runs an agent on a server with each fault, and checks what holds for all of them.
fn with_each_fault(run: impl Fn(&Workdir, &ModelServer) -> Ran) {
    for fault in faults() {
        let server = ModelServer::start(fault);
        let workdir = workdir(&server);
        let ran = run(&workdir, &server);
        let told = format!("{fault:?}: {ran:?}");
        match ran.code() {
            Some(0 | 3) => {}
            // A failure says what to do.
            Some(1) => {
                let says = ["archie ", "error: ", "That did not work: ", "No result: "];
                let is_said =
                    |words: &&str| ran.err().contains(*words) || ran.out().contains(*words);
                assert!(says.iter().any(is_said), "{told}");
            }
            _ => panic!("{told}"),
        }
        assert!(server.answers() > 0, "{told}");
        if fault == Fault::OneSlot {
            assert_eq!(server.most_at_once(), 1, "{told}");
        }
    }
}

/// What the program says it has paid for is what the server has answered to the end; and a broken answer is told.
fn check_calls(ran: &Ran, server: &ModelServer) {
    let told = ran.err();
    let calls = told.lines().filter_map(|line| {
        let (count, _) = line.strip_prefix('(')?.split_once(" model call")?;
        count.parse::<usize>().ok()
    });
    assert_eq!(calls.sum::<usize>(), server.answers(), "{ran:?}");
    if server.fault == Fault::DiesInMidStream {
        assert!(told.contains("asking again"), "not silently: {ran:?}");
    }
}

#[test]
fn analyze_ends_with_a_result() {
    with_each_fault(|workdir, server| {
        let fault = server.fault;
        let query = ["analyze", "--query", "Choose a queue", "--inputs", "notes"];
        let asked = workdir.run(&query, "");
        assert_eq!(asked.code(), Some(3), "{fault:?}: {asked:?}");
        let ran = workdir.run(&["resume", &workdir.thread()], "SOLUTION APPROVED\n");
        assert_eq!(ran.code(), Some(0), "{fault:?}: {ran:?}");
        assert!(workdir.result().contains("## Decisions and why"));
        if fault == Fault::DiesInMidStream {
            assert!(ran.err().contains("asking again"), "not silently: {ran:?}");
        }
        ran
    });
}

#[test]
fn docs_writes_its_pages() {
    with_each_fault(|workdir, server| {
        let fault = server.fault;
        repository(&workdir.path(""));
        let agents = "file-structure,architecture-analyzer,flow-analyzer";
        let args = ["docs", "repo", "--agents", agents, "--max-iterations", "1"];
        let ran = workdir.run(&args, "");
        assert_eq!(ran.code(), Some(0), "{fault:?}: {ran:?}");
        for page in agents.split(',') {
            let page = workdir.path(&format!("repo/.arch-docs/{page}.md"));
            assert!(page.exists(), "{fault:?}: {}", page.display());
        }
        check_calls(&ran, server);
        ran
    });
}

#[test]
fn sheet_stops_and_leaves_the_workbook_alone() {
    with_each_fault(|workdir, server| {
        let fault = server.fault;
        fs::write(workdir.path("sales.xlsx"), sales()).unwrap();
        let args = [
            "sheet",
            "sales.xlsx",
            "--instruction",
            "Count each Product",
            "--max-steps",
            "2",
            "--yes",
        ];
        let mut command = workdir.command();
        command.args(args).env("ARCHIE_PYTHON", python());
        let ran = Ran::of(command, "");
        let kept = fs::read(workdir.path("sales.xlsx")).unwrap();
        assert_eq!(kept, sales(), "{fault:?}");
        check_calls(&ran, server);
        ran
    });
}

#[test]
fn mail_sorts_and_sends_nothing() {
    with_each_fault(|workdir, server| {
        let fault = server.fault;
        let mails = ["a@x", "b@x", "c@x"].map(|id| {
            let body = "Are the /v2 endpoints missing on purpose?";
            mail(id, "Bob <bob@example.com>", &format!("Question {id}"), body)
        });
        fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
        let ran = workdir.run(&["mail", "ingest", "./mbox", "--json"], "");
        assert_eq!(ran.code(), Some(0), "{fault:?}: {ran:?}");
        let sorted: serde_json::Value = serde_json::from_str(&ran.out()).unwrap();
        assert_eq!(sorted.as_array().unwrap().len(), 3, "{fault:?}");
        assert!(!workdir.path("mbox.outbox").exists(), "{fault:?}");
        ran
    });
}

#[test]
fn atris_calls_or_asks_and_writes_nothing() {
    with_each_fault(|workdir, server| {
        let fault = server.fault;
        let api = Server::start(server::audius);
        point(workdir, &[&api]);
        let ran = workdir.run(&["atris", "show me music by people I may know"], "");
        assert_eq!(api.writes(), 0, "{fault:?}");
        check_calls(&ran, server);
        ran
    });
}

#[test]
fn the_doctor_measures_what_the_model_does() {
    for fault in [Fault::OneSlot, Fault::IgnoresForms] {
        let server = ModelServer::start(fault);
        let report = workdir(&server).json(&["doctor", "--json"]);
        let measured = &report["model"]["measured"];
        let keeps_to_forms = fault != Fault::IgnoresForms;
        assert_eq!(measured["forms_enforced"], keeps_to_forms, "{report}");
        assert_eq!(measured["calls_tools"], false, "{report}");
        let slots = (fault == Fault::OneSlot).then_some(1);
        assert_eq!(measured["slots"], serde_json::json!(slots), "{report}");
        let says = report["model"]["says"].as_str().unwrap();
        assert!(says.contains("did not call a tool"), "{says}");
        assert_eq!(report["model"]["profile"], "small", "{report}");
    }
}
