//! The screen without a terminal and without a store: keys in, pictures out.

use archie_agent::{AgentUi, InterruptRequest, PlainUi};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value as Json, json};
use superstep::checkpoint::InterruptRow;
use superstep::checkpoint::format::{InterruptRecord, OnDeadline};
use superstep::run::OpenInterrupt;
use superstep::{Seq, ThreadId, Timestamp, Value};

use super::draw::{Theme, draw};
use super::pane::RunOutput;
use super::state::{ClosedItem, EndedRun, InboxScreen, ItemText, Mode, Phase, Request};
use crate::inbox::{InboxItem, ListedItem};

const NOW: Timestamp = Timestamp(1_000_000_000);

/// An item that asks whether to send a mail, with this body.
fn mail(number: u32, body: &str) -> ListedItem {
    let request = json!({
        "action_request": { "action": "send_email", "args": { "to": "ada@example.com", "body": body } },
        "config": { "allow_accept": true, "allow_edit": true, "allow_respond": true, "allow_ignore": true },
    });
    item(number, "approval", request)
}

fn item(number: u32, kind: &str, request: Json) -> ListedItem {
    let id = format!("{number:06x}{:026x}", 7);
    let thread = ThreadId::new(&format!("thread-{number}")).unwrap();
    let interrupt = InterruptRecord {
        id: id.parse().unwrap(),
        frame: Default::default(),
        node: superstep::NodeName::new("ask").unwrap(),
        task: id.parse().unwrap(),
        key: "send".to_owned(),
        kind: kind.to_owned(),
        request: Value::encode(&request).unwrap(),
        schema: None,
        deadline: None,
        on_deadline: OnDeadline::Wait,
        extensions: Default::default(),
    };
    let row = InterruptRow {
        thread,
        id: interrupt.id,
        seq: Seq(3),
        asked_at: Timestamp(NOW.0 - 1_000 * i64::from(number)),
        body: Vec::new(),
        answer: None,
        answered_by: String::new(),
        answered_at: None,
        closed: None,
    };
    let asked = InterruptRequest::of(&interrupt).unwrap();
    ListedItem {
        item: InboxItem {
            open: OpenInterrupt { interrupt, row },
            asked,
            short_id: format!("{number:06x}"),
        },
        agent: "email_assistant".to_owned(),
        subject: format!("Mail {number}"),
    }
}

/// A screen of this size, and what it shows.
struct Viewer {
    screen: InboxScreen,
    terminal: Terminal<TestBackend>,
}

impl Viewer {
    fn new(items: Vec<ListedItem>, width: u16, height: u16) -> Self {
        let mut screen = InboxScreen::new(NOW);
        screen.update(items, Vec::new());
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut viewer = Self { screen, terminal };
        viewer.draw();
        viewer
    }

    fn draw(&mut self) -> String {
        if let Some(listed) = self.screen.wants_text() {
            let asked = &listed.item.asked;
            let shown = ItemText {
                text: PlainUi.describe(asked),
                is_complete: true,
                choices: PlainUi.choices(asked),
            };
            self.screen.set_text(shown);
        }
        let theme = Theme { has_colours: false };
        let drawn = self
            .terminal
            .draw(|frame| draw(&mut self.screen, frame, theme));
        let buffer = drawn.unwrap().buffer;
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width).map(|row| {
            let mut line = String::new();
            let mut hidden = 0;
            for cell in row {
                // The second column of a wide character is part of the first.
                if hidden > 0 {
                    hidden -= 1;
                    continue;
                }
                line.push_str(cell.symbol());
                hidden = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
            }
            line.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    fn press(&mut self, code: KeyCode) -> Option<Request> {
        let request = self.screen.press(KeyEvent::new(code, KeyModifiers::NONE));
        self.draw();
        request
    }

    fn letter(&mut self, letter: char) -> Option<Request> {
        self.press(KeyCode::Char(letter))
    }

    fn types(&mut self, text: &str) {
        text.chars()
            .for_each(|letter| assert_eq!(self.letter(letter), None));
    }

    fn selected(&self) -> &str {
        &self.screen.selected_entry().unwrap().loaded.item.short_id
    }

    fn notice(&self) -> &str {
        self.screen
            .notice
            .as_ref()
            .map_or("", |notice| &notice.text)
    }
}

fn long_body(lines: usize) -> String {
    let lines = (1..=lines).map(|line| format!("line {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_screen_at_80_by_24() {
    let mut items: Vec<_> = (1..=9)
        .map(|number| mail(number, "See you at eight."))
        .collect();
    items[3].item.open.interrupt.deadline = Some(Timestamp(NOW.0 + 300_000));
    items[4].subject =
        "A subject that is much longer than what fits into a line of eighty columns".to_owned();
    items[5].subject =
        "日本語の件名がここに入りますとても長いので切られるはずですけれどもどうでしょうか"
            .to_owned();
    let mut viewer = Viewer::new(items, 80, 24);
    insta::assert_snapshot!(viewer.draw());
    viewer.press(KeyCode::Enter);
    insta::assert_snapshot!("zoomed", viewer.draw());
}

#[test]
fn the_screen_at_120_by_40() {
    let items = (1..=30)
        .map(|number| mail(number, &long_body(60)))
        .collect();
    let mut viewer = Viewer::new(items, 120, 40);
    insta::assert_snapshot!(viewer.draw());
}

#[test]
fn an_item_is_accepted_only_after_its_last_line_was_on_the_screen() {
    let mut viewer = Viewer::new(vec![mail(1, &long_body(60))], 80, 24);
    assert_eq!(viewer.letter('a'), None);
    assert!(
        viewer.notice().starts_with("Read it to its end first"),
        "{}",
        viewer.notice()
    );
    assert!(matches!(viewer.screen.mode, Mode::Browse));
    let mut pages = 0;
    while viewer.letter('a').is_none() && matches!(viewer.screen.mode, Mode::Browse) {
        viewer.letter(' ');
        pages += 1;
        assert!(pages < 20, "it is never read");
    }
    assert!(pages >= 2, "{pages}");
    let Some(Request::Answer { line, .. }) = viewer.press(KeyCode::Enter) else {
        panic!("not answered");
    };
    assert_eq!(line, "accept");
}

#[test]
fn a_jump_over_lines_does_not_count_as_reading_them() {
    let mut viewer = Viewer::new(vec![mail(1, &long_body(200))], 80, 24);
    if let Some(reading) = viewer
        .screen
        .selected_mut()
        .and_then(|entry| entry.reading.as_mut())
    {
        reading.top = usize::MAX;
    }
    viewer.draw();
    assert_eq!(viewer.letter('a'), None);
    assert!(
        viewer.notice().starts_with("Read it to its end first"),
        "{}",
        viewer.notice()
    );
}

#[test]
fn what_was_read_stays_read_when_the_terminal_changes_its_size() {
    let mut viewer = Viewer::new(vec![mail(1, &long_body(40))], 80, 24);
    for _ in 0..10 {
        viewer.letter(' ');
    }
    for (width, height) in [(40, 12), (130, 50), (20, 6), (80, 24)] {
        viewer.terminal.backend_mut().resize(width, height);
        viewer.draw();
        viewer.letter('a');
        assert!(
            matches!(viewer.screen.mode, Mode::Confirm { .. }),
            "{width}"
        );
        viewer.press(KeyCode::Esc);
    }
}

#[test]
fn a_refusal_needs_no_reading_and_any_other_key_keeps_the_item_open() {
    let mut viewer = Viewer::new(vec![mail(1, &long_body(60))], 80, 24);
    viewer.letter('i');
    assert!(matches!(viewer.screen.mode, Mode::Confirm { .. }));
    assert_eq!(viewer.letter('j'), None);
    assert!(viewer.notice().contains("stays open"));
    viewer.letter('r');
    viewer.types("shorter");
    let request = viewer.press(KeyCode::Enter);
    let Some(Request::Answer { line, .. }) = request else {
        panic!("not answered");
    };
    assert_eq!(line, "response shorter");
}

#[test]
fn an_item_that_another_person_answers_stays_on_the_screen_and_takes_no_answer() {
    let mut viewer = Viewer::new(vec![mail(2, "Yes."), mail(1, "No.")], 80, 24);
    let first = viewer.selected().to_owned();
    assert_eq!(first, "000002", "the oldest is first");
    let id = viewer.screen.selected_entry().unwrap().id();
    let closed = ClosedItem {
        id,
        why: "bob answered first: \"accept\"".to_owned(),
    };
    viewer.screen.update(vec![mail(1, "No.")], vec![closed]);
    assert_eq!(viewer.selected(), first);
    assert!(
        viewer.draw().contains("bob answered first"),
        "{}",
        viewer.draw()
    );
    assert_eq!(viewer.letter('a'), None);
    assert!(
        viewer.notice().starts_with("Too late: bob"),
        "{}",
        viewer.notice()
    );
    viewer.letter('j');
    assert_eq!(viewer.selected(), "000001");
    assert!(!viewer.draw().contains("000002"));
}

#[test]
fn a_confirmation_is_withdrawn_when_the_item_goes_away_or_changes() {
    let mut viewer = Viewer::new(vec![mail(1, "Yes.")], 80, 24);
    viewer.letter('a');
    viewer
        .screen
        .update(vec![mail(1, "Yes, and send my password too.")], Vec::new());
    viewer.draw();
    assert_eq!(viewer.press(KeyCode::Enter), None);
    assert!(matches!(viewer.screen.mode, Mode::Browse));
    viewer.letter('a');
    viewer.screen.update(Vec::new(), Vec::new());
    assert_eq!(viewer.press(KeyCode::Enter), None);
}

#[test]
fn new_items_appear_and_do_not_move_the_selection() {
    let mut viewer = Viewer::new(vec![mail(1, "a"), mail(2, "b")], 80, 24);
    viewer.letter('j');
    assert_eq!(viewer.selected(), "000001");
    viewer.screen.update(
        (1..=40).map(|number| mail(number, "x")).collect(),
        Vec::new(),
    );
    assert_eq!(viewer.selected(), "000001");
    assert!(viewer.draw().contains("40 open questions"));
    viewer.letter('g');
    assert_eq!(viewer.selected(), "000028");
}

#[test]
fn an_answered_item_shows_its_run_and_its_end() {
    use archie_agent::Terminal as _;
    let mut viewer = Viewer::new(vec![mail(1, "a")], 80, 24);
    let id = viewer.screen.selected_entry().unwrap().id();
    let output = RunOutput::default();
    viewer.screen.set_running(id, output.clone());
    let waiting = output.waiting("writing the answer, 12 tokens");
    output.line("sent 1 message");
    assert!(
        viewer.draw().contains("writing the answer, 12 tokens"),
        "{}",
        viewer.draw()
    );
    assert!(viewer.letter('q').is_none(), "a run is in progress");
    assert!(
        viewer.draw().contains("1 run in progress"),
        "{}",
        viewer.draw()
    );
    viewer.press(KeyCode::Esc);
    drop(waiting);
    let lines = output.lines();
    viewer
        .screen
        .set_ended(id, Ok(EndedRun { lines, is_ok: true }));
    assert!(viewer.draw().contains("sent 1 message"));
    assert_eq!(
        viewer.screen.summary(),
        ["000001  Mail 1", "  sent 1 message"]
    );
    assert_eq!(viewer.letter('q'), Some(Request::Leave));
}

#[test]
fn what_a_thread_asks_next_is_selected_after_an_answer() {
    let mut viewer = Viewer::new(vec![mail(2, "a"), mail(1, "b")], 80, 24);
    let id = viewer.screen.selected_entry().unwrap().id();
    viewer.screen.set_running(id, RunOutput::default());
    let ended = EndedRun {
        lines: Vec::new(),
        is_ok: true,
    };
    viewer.screen.set_ended(id, Ok(ended));
    let mut next = mail(9, &long_body(60));
    next.item.open.row.thread = ThreadId::new("thread-2").unwrap();
    viewer.screen.update(vec![mail(1, "b"), next], Vec::new());
    viewer.draw();
    assert_eq!(viewer.selected(), "000009");
    assert_eq!(viewer.letter('a'), None);
    assert!(
        matches!(viewer.screen.mode, Mode::Browse),
        "it was not read"
    );
}

#[test]
fn an_answer_that_was_not_taken_leaves_the_item_open() {
    let mut viewer = Viewer::new(vec![mail(1, "a")], 80, 24);
    let id = viewer.screen.selected_entry().unwrap().id();
    viewer.screen.set_running(id, RunOutput::default());
    viewer
        .screen
        .set_ended(id, Err("the store cannot be reached".to_owned()));
    assert!(matches!(
        viewer.screen.selected_entry().unwrap().phase,
        Phase::Open
    ));
    assert!(viewer.draw().contains("the store cannot be reached"));
}

#[test]
fn the_changes_of_an_edit_are_read_to_their_end_before_they_are_sent() {
    let mut viewer = Viewer::new(vec![mail(1, "a")], 80, 24);
    let diff: String = (0..80).map(|line| format!("+ line {line}\n")).collect();
    viewer.screen.review(&diff, "{}".to_owned());
    viewer.draw();
    assert_eq!(viewer.press(KeyCode::Enter), None, "it is not read yet");
    let mut pages = 0;
    let request = loop {
        pages += 1;
        if let Some(request) = viewer.press(KeyCode::Enter) {
            break request;
        }
        assert!(pages < 20);
    };
    assert!(matches!(request, Request::Answer { .. }));
}

#[test]
fn a_filter_shows_items_of_an_agent_or_with_a_word() {
    let mut items: Vec<_> = (1..=5).map(|number| mail(number, "a")).collect();
    items[2].agent = "sheet".to_owned();
    let mut viewer = Viewer::new(items, 80, 24);
    viewer.letter('/');
    viewer.types("sheet");
    viewer.press(KeyCode::Enter);
    assert_eq!(viewer.screen.visible().count(), 1);
    assert_eq!(viewer.selected(), "000003");
    viewer.press(KeyCode::Esc);
    assert_eq!(viewer.screen.visible().count(), 5);
}

#[test]
fn pasted_text_answers_nothing() {
    let mut viewer = Viewer::new(vec![mail(1, "a")], 80, 24);
    viewer.screen.paste("a\n");
    assert!(matches!(viewer.screen.mode, Mode::Browse));
    viewer.letter('r');
    viewer.screen.paste("first\nsecond");
    let Some(Request::Answer { line, .. }) = viewer.press(KeyCode::Enter) else {
        panic!("not answered");
    };
    assert_eq!(line, "response first second");
}

#[test]
fn hostile_text_cannot_leave_its_place() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}evil\r\nline\u{9b}31m\ttab";
    let mut items = vec![mail(1, hostile)];
    items[0].subject = "Mail \u{1b}[2J".to_owned();
    let mut viewer = Viewer::new(items, 80, 24);
    viewer.letter('j');
    let shown = viewer.draw();
    assert!(shown.contains("\\u{1b}[2J"), "{shown}");
    let hidden = shown
        .chars()
        .find(|c| archie_agent::printable::is_hidden(*c) && *c != '\n');
    assert_eq!(hidden, None, "{shown}");
}

#[test]
fn every_size_of_a_terminal_is_drawn() {
    let items: Vec<_> = (1..=3).map(|number| mail(number, &long_body(30))).collect();
    let mut viewer = Viewer::new(items, 80, 24);
    for width in [1, 2, 5, 10, 40, 109, 110, 300] {
        for height in [1, 2, 3, 4, 5, 10, 100] {
            viewer.terminal.backend_mut().resize(width, height);
            for key in ['z', '?', 'j', 'r'] {
                viewer.letter(key);
                viewer.press(KeyCode::Esc);
            }
        }
    }
}

#[test]
fn ten_thousand_lines_are_laid_out_once_and_scrolled_quickly() {
    let mut viewer = Viewer::new(vec![mail(1, &long_body(10_000))], 80, 24);
    let mut pages = 0;
    while !viewer
        .screen
        .selected_entry()
        .unwrap()
        .reading
        .as_ref()
        .unwrap()
        .is_read()
    {
        viewer.letter(' ');
        pages += 1;
        assert!(pages < 2_000);
    }
    viewer.letter('a');
    assert!(matches!(viewer.screen.mode, Mode::Confirm { .. }));
}
