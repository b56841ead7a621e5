//! The acceptance of `analyze` in a real terminal: keys are typed, the screen is read.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::kit::Workdir;
use crate::mail::kit::{mail, mbox};
use crate::model_server::{Fault, ModelServer};
use crate::tmux::{LOOK, PATIENCE, Terminal};

const ASKS: &str = "Your response:";
const PROMPT: &str = "archie>";

#[test]
fn killed_at_the_prompt_and_in_a_call_the_interview_goes_on_and_ends_in_a_file() {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "expect": "yes, per customer", "kill": true},
        {"at": "followup", "expect": "yes, per customer", "text": "May it be delivered twice?"},
        {"at": "followup", "expect": "not done yet", "text": "I propose one queue. Approved?"},
        {"at": "final", "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [],
            "decisions": [{"claim": "One machine is enough.", "file": "b.txt", "line": 1, "quote": "We have one machine"}],
            "open_questions": []
        }}
    ]));

    let first = Terminal::open(&workdir);
    first.shows(PROMPT);
    first.types("analyze --query \"Choose a queue\" --inputs ./notes");
    let screen = first.shows(ASKS);
    assert!(
        screen.contains("read a.md, b.txt (skipped c.png)"),
        "{screen}"
    );
    assert!(screen.contains("Agent: Is ordering required?"), "{screen}");
    first.kill_9();

    let id = workdir.thread();
    let second = Terminal::open(&workdir);
    second.shows(PROMPT);
    second.types(&format!("resume {}", &id[..23]));
    let screen = second.shows(ASKS);
    assert!(screen.contains("Agent: Is ordering required?"), "{screen}");
    assert_eq!(
        workdir.asked("initial"),
        1,
        "nobody paid for the question again"
    );
    second.types("yes, per customer");
    // The model's call ends the process.
    second.until_gone();

    let third = Terminal::open(&workdir);
    third.shows(PROMPT);
    third.types(&format!("resume {id}"));
    let screen = third.shows(ASKS);
    assert!(
        screen.contains("Agent: May it be delivered twice?"),
        "{screen}"
    );
    third.types("not done yet");
    let screen = third.shows(ASKS);
    assert!(
        screen.contains("I propose one queue. Approved?"),
        "{screen}"
    );
    third.types("SOLUTION APPROVED");
    let screen = third.shows(PROMPT);
    assert!(screen.contains("--- Final Analysis Output ---"), "{screen}");
    assert!(
        screen.contains("saved ./notes/analysis_result.md"),
        "{screen}"
    );
    third.types("exit");
    third.until_gone();

    assert!(
        workdir
            .result()
            .contains("  - supported: `b.txt:1` says \"We have one machine\"\n")
    );
    let asked = ["initial", "followup", "final"].map(|label| workdir.asked(label));
    assert_eq!(
        asked,
        [1, 3, 1],
        "one call more, for the one that was killed"
    );
}

#[test]
fn ctrl_c_keeps_the_thread_and_says_how_to_go_on() {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "timeout": true},
        {"at": "initial", "text": "Is ordering required?"}
    ]));
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types("analyze --query \"Choose a queue\" --inputs ./notes");
    let begun = Instant::now();
    while workdir.asked("initial") == 0 {
        assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
        std::thread::sleep(LOOK);
    }
    terminal.presses("C-c");
    let screen = terminal.shows(PROMPT);
    assert!(
        screen.contains("the thread is kept; continue with `resume"),
        "{screen}"
    );
    terminal.types(&format!("resume {}", workdir.thread()));
    let screen = terminal.shows(ASKS);
    assert!(screen.contains("Agent: Is ordering required?"), "{screen}");
    // Leaving a question leaves it open.
    terminal.presses("C-d");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("the question stays open"), "{screen}");
}

#[test]
fn ctrl_c_at_a_question_leaves_it_open_also_after_a_model_call() {
    let workdir = Workdir::scripted(&json!([{"at": "initial", "text": "Is ordering required?"}]));
    let program = env!("CARGO_BIN_EXE_archie");
    let shell = [
        "sh",
        "-c",
        "trap : INT; \"$@\"; echo ended with $?; read wait",
        "sh",
    ];
    let command = [
        "analyze",
        "--query",
        "Choose a queue",
        "--inputs",
        "./notes",
    ];
    let line = [&shell[..], &[program], &command[..]].concat();
    let terminal = Terminal::open_with(&workdir, &line);
    terminal.shows(ASKS);
    terminal.presses("C-c");
    let screen = terminal.until("ended with 3");
    assert!(screen.contains("the question stays open"), "{screen}");
    assert_eq!(workdir.items().len(), 1);
}

#[test]
fn the_shell_stops_a_command_at_the_second_ctrl_c() {
    let server = ModelServer::start(Fault::Slow(Duration::from_secs(5)));
    let workdir = Workdir::with_model("openai:m").with_environment("OPENAI_BASE_URL", &server.url);
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types("doctor");
    let begun = Instant::now();
    while server.most_at_once() == 0 {
        assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
        std::thread::sleep(LOOK);
    }
    terminal.presses("C-c");
    terminal.until("press Ctrl-C again to stop the command");
    terminal.presses("C-c");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("error: stopped"), "{screen}");
    terminal.types("threads");
    terminal.shows(PROMPT);
}

#[test]
fn commands_and_threads_are_completed_and_a_line_may_go_on() {
    let workdir = Workdir::scripted(&json!([{"at": "initial", "text": "Is ordering required?"}]));
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
    let id = workdir.thread();
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal
        .tmux()
        .args(["send-keys", "-l", "sho"])
        .status()
        .unwrap();
    terminal.presses("Tab");
    terminal.shows("archie> show");
    terminal
        .tmux()
        .args(["send-keys", "-l", &id[..8]])
        .status()
        .unwrap();
    terminal.presses("Tab");
    terminal.shows(&id);
    terminal.presses("Enter");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("asks: Is ordering required?"), "{screen}");
    terminal.types("threads \\");
    terminal.types("--status paused");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("waiting for you"), "{screen}");
}

#[test]
fn free_text_in_the_shell_is_a_question() {
    let workdir = Workdir::scripted(&json!([
        {"at": "ask", "expect": "what's kafka?", "text": "A log of events."}
    ]));
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types("what's kafka?");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("A log of events."), "{screen}");
    terminal.types("analyse notes");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("'analyze'"), "{screen}");
    assert_eq!(workdir.asked("ask"), 1, "a mistyped command is no question");
    terminal.types("resume nothing");
    let screen = terminal.shows(PROMPT);
    assert!(
        screen.contains("no thread begins with `nothing`; `threads` lists them"),
        "{screen}"
    );
    terminal.types("model openai:gpt-4.1-mini");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("OPENAI_API_KEY is not set"), "{screen}");
}

#[test]
fn setup_in_the_shell_gives_it_a_model() {
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = Workdir::with_model("")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_BASE_URL", &server.url);
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types("what is a queue?");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("choose a model first: `setup`"), "{screen}");
    terminal.types("setup");
    terminal.shows("[1]:");
    terminal.types("1");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("Saved as your model in"), "{screen}");
    terminal.types("what is a queue?");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("ten thousand orders a day"), "{screen}");
}

#[test]
fn tab_lists_the_candidates() {
    let workdir = Workdir::scripted(&json!([]));
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal
        .tmux()
        .args(["send-keys", "-l", "s"])
        .status()
        .unwrap();
    terminal.presses("Tab");
    let begun = Instant::now();
    while !terminal.screen().contains("studio") {
        assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
        std::thread::sleep(LOOK);
    }
    let screen = terminal.screen();
    for command in ["serve", "setup", "sheet", "show", "studio"] {
        assert!(screen.contains(command), "{command}: {screen}");
    }
}

#[test]
fn analyze_asks_for_the_folder_before_the_question() {
    let workdir = Workdir::scripted(&json!([{"at": "initial", "text": "Is ordering required?"}]));
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types("analyze");
    terminal.shows("Folder with your notes:");
    terminal.types("./notes");
    terminal.shows("What is to be decided?");
    terminal.types("Choose a queue");
    terminal.shows(ASKS);
    let ran = workdir.run(&["analyze"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(!ran.out().contains("What is to be decided?"), "{ran:?}");
}

#[test]
fn a_yes_to_an_unseen_item_displays_it_page_by_page_and_asks() {
    let (workdir, id, ..) = crate::approvals::with_many_recipients();
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types(&format!("inbox {id} accept"));
    terminal.shows("q: stop --");
    // Who leaves before the end has not seen it.
    terminal.types("q");
    let screen = terminal.shows(PROMPT);
    assert!(
        screen.contains("was not displayed to you in full"),
        "{screen}"
    );
    terminal.types(&format!("inbox {id} accept"));
    let screen = terminal.shows("q: stop --");
    assert!(screen.contains("mallory@evil.example"), "{screen}");
    terminal.types("a");
    let screen = terminal.shows("[y/N]");
    assert!(screen.contains("Line 99 of the draft."), "{screen}");
    terminal.types("n");
    terminal.shows(PROMPT);
    assert!(crate::mail::sent(&workdir).is_empty());
    // Now it was displayed.
    terminal.types(&format!("inbox {id} accept"));
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("sent 1 message"), "{screen}");
    assert_eq!(crate::mail::sent(&workdir).len(), 1);
}

#[test]
fn edit_opens_an_editor_shows_the_changes_and_sends_what_was_agreed_to() {
    let (workdir, id, ..) = crate::approvals::with_many_recipients();
    let workdir = workdir.with_environment("EDITOR", "sed -i 's/Line 99 of/Row 99 of/'");
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types(&format!("inbox {id}"));
    terminal.shows("q: stop --");
    terminal.types("a");
    let screen = terminal.shows("accept, edit, response, ignore:");
    assert!(
        screen.contains("accept      send this mail as shown"),
        "{screen}"
    );
    terminal.types("edit");
    let screen = terminal.shows("[y/N]");
    assert!(
        screen.contains("- Line 99 of the draft.") && screen.contains("+ Row 99 of the draft."),
        "{screen}"
    );
    assert!(crate::mail::sent(&workdir).is_empty());
    terminal.types("y");
    terminal.shows(PROMPT);
    let sent = crate::mail::sent(&workdir);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains("Row 99 of the draft."), "{}", sent[0]);
}

#[test]
fn the_demo_pauses_between_agents_and_keeps_what_it_made() {
    let workdir = Workdir::scripted(&json!([])).with_environment(
        "ARCHIE_PYTHON",
        &superstep_conformance::services::program("sandbox"),
    );
    let temporary = workdir.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let workdir = workdir.with_environment("TMPDIR", temporary.to_str().unwrap());
    let program = workdir.command();
    let program = program.get_program().to_str().unwrap().to_owned();
    let terminal = Terminal::open_with(&workdir, &[&program, "demo"]);
    for agent in ["analyze", "docs", "atris", "email_assistant"] {
        let screen = terminal.shows("q to stop:");
        assert!(screen.contains(&format!(": {agent}")), "{screen}");
        assert!(!screen.contains("+queryType"), "{screen}");
        terminal.presses("Enter");
        // The next agent has begun.
        let begun = Instant::now();
        while terminal.screen().trim_end().ends_with("q to stop:") {
            assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
            std::thread::sleep(LOOK);
        }
    }
    let begun = Instant::now();
    let screen = loop {
        let screen = terminal.screen();
        if screen.contains("Studio at http") {
            break screen;
        }
        assert!(begun.elapsed() < 3 * PATIENCE, "{screen}");
        std::thread::sleep(LOOK);
    };
    assert!(screen.contains("What to try next"), "{screen}");
    assert!(
        screen.contains("Nothing was called or changed: you said no."),
        "{screen}"
    );
    terminal.presses("C-c");
    terminal.until_gone();
    let folder = std::fs::read_dir(&temporary).unwrap().next().unwrap();
    let folder = folder.unwrap().path();
    assert!(folder.join("analyze/notes/analysis_result.md").is_file());
    assert!(folder.join("docs/shop/.arch-docs/index.html").is_file());
}

/// A model server that breaks its first stream in the middle of a word, and then answers.
fn breaking_server() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut is_first = true;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = match read_path(&mut stream).contains("/chat/completions") {
                true if std::mem::take(&mut is_first) => stream.write_all(half().as_bytes()),
                true => stream.write_all(whole().as_bytes()),
                false => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
            };
        }
    });
    url
}

/// Reads a request, and returns its first line.
fn read_path(stream: &mut TcpStream) -> String {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        seen.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&seen).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    head.lines().next().unwrap_or_default().to_owned()
}

fn chunk(text: &str) -> String {
    let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {delta}\n\n")
}

fn half() -> String {
    // The body is promised to be longer than it is.
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9000\r\n\r\n";
    format!("{head}{}", chunk("Is orde"))
}

fn whole() -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let text = chunk("Is ordering ") + &chunk("required?");
    format!("{head}{text}data: {end}\n\ndata: [DONE]\n\n")
}

/// A terminal in which mail is ingested, and which stays.
fn ingesting(workdir: &Workdir, mails: &[&str]) -> Terminal {
    let mails = mails.iter().map(|id| {
        let subject = format!("Question {id}");
        mail(id, "Bob <bob@example.com>", &subject, "When?")
    });
    let mails: Vec<_> = mails.collect();
    std::fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
    let program = env!("CARGO_BIN_EXE_archie");
    let script = "\"$0\" mail ingest ./mbox; echo ended with $?; read wait";
    Terminal::open_with(workdir, &["sh", "-c", script, program])
}

#[test]
fn ingesting_mail_shows_which_mail_it_works_on_and_since_when() {
    let server = ModelServer::start(Fault::Slow(Duration::from_millis(1_200)));
    let workdir = Workdir::with_model("openai:m").with_environment("OPENAI_BASE_URL", &server.url);
    let terminal = ingesting(&workdir, &["a@x", "b@x"]);
    // The time goes on while the model writes.
    terminal.until("mail 1 of 2: Question a@x · 1 s");
    terminal.until("mail 1 of 2: Question a@x · 2 s");
    let screen = terminal.until("mail 2 of 2: Question b@x");
    assert!(!screen.contains("mail 1 of 2"), "{screen}");
    let screen = terminal.until("ended with 0");
    assert!(!screen.contains("of 2: Question"), "{screen}");
    for id in ["a@x", "b@x"] {
        let line = format!("\"Question {id}");
        assert_eq!(screen.matches(&line).count(), 1, "{screen}");
    }
}

#[test]
fn what_is_said_about_a_model_that_is_down_does_not_mix_with_the_progress_of_ingesting() {
    let workdir = Workdir::with_model("openai:m")
        .with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let terminal = ingesting(&workdir, &["a@x"]);
    let screen = terminal.until("ended with 1");
    let said: Vec<_> = screen
        .lines()
        .map(str::trim_end)
        .filter(|line| line.contains("asking again"))
        .collect();
    let attempts = [2, 3, 4].map(|attempt| format!("asking again ({attempt} of 4)"));
    assert_eq!(said, attempts, "{screen}");
    // Once as the reason of the first attempt, and once as that of the mail's failure.
    assert_eq!(screen.matches("was not reached").count(), 2, "{screen}");
}

#[test]
fn after_a_stream_that_broke_the_whole_answer_is_on_a_line_of_its_own() {
    let workdir = Workdir::with_model("openai:breaking")
        .with_environment("OPENAI_BASE_URL", &breaking_server());
    let terminal = Terminal::open(&workdir);
    terminal.shows(PROMPT);
    terminal.types("analyze --query \"Choose a queue\" --inputs ./notes");
    let screen = terminal.shows(ASKS);
    assert!(screen.contains("asking again (2 of 4)"), "{screen}");
    let is_whole = |line: &str| line.trim_end() == "Agent: Is ordering required?";
    assert!(screen.lines().any(is_whole), "{screen}");
    assert!(!screen.contains("Is ordeIs ordering"), "{screen}");
}
