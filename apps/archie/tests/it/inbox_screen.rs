//! The full-screen inbox, driven by keys in real terminals.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::approvals::{announced, ingested, with_many_recipients};
use crate::kit::Workdir;
use crate::mail::kit::{done, learns, mail, sends, triage, wants};
use crate::mail::sent;
use crate::tmux::Terminal;

/// The inbox in a terminal of this name and size.
pub(crate) fn inbox(workdir: &Workdir, name: &str, size: [u16; 2]) -> Terminal {
    let program = workdir.command();
    let program = program.get_program().to_str().unwrap().to_owned();
    Terminal::open_sized(workdir, name, &[&program, "inbox"], size)
}

/// A mail from Bob, with a draft that waits for an answer. The model ends after whatever the answer is.
fn one_draft(draft: &str) -> (Workdir, String) {
    let asks = mail("q4@x", "Bob <bob@example.com>", "Q4 report?", "When?");
    let replies = json!([
        triage("respond"),
        wants(json!([sends(draft)])),
        learns("Leave it."),
        wants(json!([done()])),
    ]);
    let (workdir, ran) = ingested(&[asks], &replies);
    let id = announced(&ran).remove(0);
    (workdir, id)
}

#[test]
fn a_draft_is_read_and_sent_by_keys_and_another_terminal_sees_who_was_first() {
    let (workdir, id) = one_draft("On Friday.");
    let one = inbox(&workdir, "one", [80, 24]);
    let other = inbox(&workdir, "other", [120, 40]);
    for terminal in [&one, &other] {
        let screen = terminal.until("read in full");
        assert!(
            screen.contains(&id) && screen.contains("email_assistant"),
            "{screen}"
        );
        assert!(screen.contains("On Friday."), "{screen}");
    }
    one.presses("a");
    one.until("accept?");
    assert!(sent(&workdir).is_empty(), "it is not confirmed");
    one.presses("Enter");
    let screen = one.until("Done");
    assert_eq!(screen.matches("sent 1 message").count(), 1, "{screen}");
    assert_eq!(sent(&workdir).len(), 1);
    let screen = other.until("ada answered first");
    assert!(screen.contains("the item is closed"), "{screen}");
    other.presses("a");
    other.until("Too late: ada");
    other.presses("q");
    other.until_gone();
    one.presses("q");
    one.until_gone();
    assert_eq!(sent(&workdir).len(), 1);
}

#[test]
fn a_long_item_is_read_to_its_end_before_it_can_be_accepted() {
    let (workdir, _, everybody, _) = with_many_recipients();
    let terminal = inbox(&workdir, "one", [80, 24]);
    terminal.until("Read it to its end to approve it");
    terminal.presses("a");
    terminal.until("Read it to its end first");
    let mut seen = terminal.screen();
    for _ in 0..40 {
        if seen.contains("read in full") {
            break;
        }
        let before = terminal.screen();
        terminal.presses("Space");
        while terminal.screen() == before {
            std::thread::sleep(crate::tmux::LOOK);
        }
        seen.push_str(&terminal.screen());
    }
    for who in everybody {
        assert!(seen.contains(&who), "{who} was not on the screen");
    }
    assert!(seen.contains("Line 0 of the draft.") && seen.contains("Line 99 of the draft."));
    terminal.presses("a");
    terminal.presses("Enter");
    terminal.until("sent 1 message");
    assert_eq!(sent(&workdir).len(), 1);
}

/// Makes `EDITOR` a script that gets the name of the file.
fn with_editor(workdir: Workdir, script: &str) -> Workdir {
    let editor = workdir.path("editor.sh");
    fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
    workdir.with_environment("EDITOR", editor.to_str().unwrap())
}

#[test]
fn a_draft_is_edited_in_the_editor_and_the_change_is_shown_before_it_is_sent() {
    let (workdir, _) = one_draft("On Friday.");
    let workdir = with_editor(workdir, "sed -i 's/On Friday/On Monday/' \"$1\"");
    let terminal = inbox(&workdir, "one", [80, 24]);
    terminal.until("read in full");
    terminal.presses("e");
    let screen = terminal.until("send it with these changes?");
    assert!(
        screen.contains("- On Friday.") && screen.contains("+ On Monday."),
        "{screen}"
    );
    terminal.presses("Enter");
    terminal.until("sent 1 message");
    assert!(sent(&workdir)[0].contains("On Monday."));
}

#[test]
fn an_argument_that_the_call_lacks_is_added_in_the_editor() {
    let (workdir, _) = one_draft("On Friday.");
    let adds = "grep -q '^#     a list: Who else has a copy' \"$1\" || exit 1
        sed -i 's/^# additional_recipients:/additional_recipients: carl@example.com/' \"$1\"";
    let workdir = with_editor(workdir, adds);
    let terminal = inbox(&workdir, "one", [80, 24]);
    terminal.until("read in full");
    terminal.presses("e");
    let screen = terminal.until("send it with these changes?");
    assert!(screen.contains("additional_recipients:"), "{screen}");
    assert!(screen.contains("+ carl@example.com"), "{screen}");
    terminal.presses("Enter");
    // It leaves the conversation, which is asked about once more.
    terminal.until("there is a new question");
    let items = workdir.json(&["inbox", "--json"]);
    assert_eq!(items[0]["kind"], "confirmation", "{items}");
    assert!(items.to_string().contains("carl@example.com"), "{items}");
    assert!(sent(&workdir).is_empty());
}

#[test]
fn what_was_typed_into_a_form_that_cannot_be_read_is_there_again() {
    let (workdir, _) = one_draft("On Friday.");
    let twice = "if grep -q '^bogus' \"$1\"; then sed -i '/^bogus/d' \"$1\"
        else sed -i -e 's/On Friday/On Monday/' -e '1i bogus: 1' \"$1\"; fi";
    let workdir = with_editor(workdir, twice);
    let terminal = inbox(&workdir, "one", [80, 24]);
    terminal.until("read in full");
    terminal.presses("e");
    terminal.until("wrote again");
    terminal.presses("e");
    let screen = terminal.until("send it with these changes?");
    assert!(screen.contains("+ On Monday."), "{screen}");
    terminal.presses("Enter");
    terminal.until("sent 1 message");
    assert!(sent(&workdir)[0].contains("On Monday."));
}

#[test]
fn the_screen_follows_the_size_and_the_terminal_is_given_back() {
    let (workdir, id) = one_draft("On Friday.");
    let program = workdir.command();
    let program = program.get_program().to_str().unwrap().to_owned();
    let lines = format!("{program} inbox\necho back-in-the-shell\nread done\n");
    fs::write(workdir.path("script.sh"), lines).unwrap();
    let terminal = Terminal::open_sized(&workdir, "one", &["sh", "script.sh"], [80, 24]);
    terminal.until("read in full");
    for size in [[40, 10], [160, 50], [20, 5], [100, 30]] {
        terminal.resizes(size);
        let screen = terminal.until("Inbox");
        let wide = screen
            .lines()
            .find(|line| line.chars().count() > usize::from(size[0]));
        assert_eq!(wide, None, "{screen}");
    }
    terminal.until(&id);
    terminal.presses("q");
    let screen = terminal.until("back-in-the-shell");
    assert!(!screen.contains("Inbox"), "{screen}");
}

#[test]
fn what_is_piped_and_plain_mode_get_a_list() {
    let (workdir, id) = one_draft("On Friday.");
    let piped = workdir.run(&["inbox"], "").out();
    let line = piped.lines().next().unwrap();
    assert!(
        line.starts_with(&id) && line.contains("email_assistant"),
        "{piped}"
    );
    assert!(
        line.contains("Q4 report?") && line.chars().count() <= 80,
        "{piped}"
    );
    let workdir = workdir.with_environment("ARCHIE_PLAIN", "1");
    let terminal = inbox(&workdir, "one", [80, 24]);
    terminal.until_gone();
}
