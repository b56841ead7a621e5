//! The acceptance of `analyze` in a real terminal: keys are typed, the screen is read.

use std::time::Instant;

use serde_json::json;

use crate::kit::Desk;
use crate::tmux::{LOOK, PATIENCE, Terminal};

const ASKS: &str = "Your response:";
const PROMPT: &str = "archie>";

#[test]
fn killed_at_the_prompt_and_in_a_call_the_interview_goes_on_and_ends_in_a_file() {
    let desk = Desk::scripted(&json!([
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

    let first = Terminal::open(&desk);
    first.shows(PROMPT);
    first.types("analyze --query \"Choose a queue\" --inputs ./notes");
    let screen = first.shows(ASKS);
    assert!(
        screen.contains("read a.md, b.txt (skipped c.png)"),
        "{screen}"
    );
    assert!(screen.contains("Agent: Is ordering required?"), "{screen}");
    first.kill_9();

    let id = desk.thread();
    let second = Terminal::open(&desk);
    second.shows(PROMPT);
    second.types(&format!("resume {}", &id[..23]));
    let screen = second.shows(ASKS);
    assert!(screen.contains("Agent: Is ordering required?"), "{screen}");
    assert_eq!(
        desk.asked("initial"),
        1,
        "nobody paid for the question again"
    );
    second.types("yes, per customer");
    // The model's call ends the process.
    second.until_gone();

    let third = Terminal::open(&desk);
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
        desk.result()
            .contains("  - checked: `b.txt:1` says \"We have one machine\"\n")
    );
    let asked = ["initial", "followup", "final"].map(|label| desk.asked(label));
    assert_eq!(
        asked,
        [1, 3, 1],
        "one call more, for the one that was killed"
    );
}

#[test]
fn ctrl_c_keeps_the_thread_and_says_how_to_go_on() {
    let desk = Desk::scripted(&json!([
        {"at": "initial", "timeout": true},
        {"at": "initial", "text": "Is ordering required?"}
    ]));
    let terminal = Terminal::open(&desk);
    terminal.shows(PROMPT);
    terminal.types("analyze --query \"Choose a queue\" --inputs ./notes");
    let begun = Instant::now();
    while desk.asked("initial") == 0 {
        assert!(begun.elapsed() < PATIENCE, "{}", terminal.screen());
        std::thread::sleep(LOOK);
    }
    terminal.presses("C-c");
    let screen = terminal.shows(PROMPT);
    assert!(
        screen.contains("the thread is kept, go on with `archie resume"),
        "{screen}"
    );
    terminal.types(&format!("resume {}", desk.thread()));
    let screen = terminal.shows(ASKS);
    assert!(screen.contains("Agent: Is ordering required?"), "{screen}");
    // Leaving a question leaves it open.
    terminal.presses("C-d");
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("the question stays open"), "{screen}");
}

#[test]
fn commands_and_threads_are_completed_and_a_line_may_go_on() {
    let desk = Desk::scripted(&json!([{"at": "initial", "text": "Is ordering required?"}]));
    desk.run(
        &[
            "analyze",
            "--query",
            "Choose a queue",
            "--inputs",
            "./notes",
        ],
        "",
    );
    let id = desk.thread();
    let terminal = Terminal::open(&desk);
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
    assert!(screen.contains("paused"), "{screen}");
}

#[test]
fn a_yes_to_an_unseen_item_displays_it_page_by_page_and_asks() {
    let (desk, id, ..) = crate::approvals::with_many_recipients();
    let terminal = Terminal::open(&desk);
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
    assert!(crate::mail::sent(&desk).is_empty());
    // Now it was displayed.
    terminal.types(&format!("inbox {id} accept"));
    let screen = terminal.shows(PROMPT);
    assert!(screen.contains("sent 1 message"), "{screen}");
    assert_eq!(crate::mail::sent(&desk).len(), 1);
}
