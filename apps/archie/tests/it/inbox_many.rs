//! The full-screen inbox with two hundred items of all five agents, and with a store that dies.

use std::collections::BTreeSet;
use std::fs;
use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr;

use crate::atris::acceptance::point;
use crate::atris::{Server, server};
use crate::cluster::Database;
use crate::docs::{replies as pages, repository};
use crate::inbox_screen::inbox;
use crate::kit::Workdir;
use crate::mail::kit::{done, mail, mbox, sends, triage_of, wants};
use crate::mail::{sent, with_one_approval};
use crate::sheet::with_sales;
use crate::snapshots::settings;
use crate::tmux::{LOOK, Terminal};

const MAILS: usize = 160;
/// Number of items of the other agents.
const ANALYSES: usize = 15;
const SHEETS: usize = 5;
const PAGES: usize = 10;
const CALLS: usize = 10;

/// A mail whose answer is long, and one whose answer is not written from left to right.
const LONG: usize = 100;
const FOREIGN: usize = 7;
const LINES: usize = 10_000;

fn subject(number: usize) -> String {
    format!("Question {number:03}")
}

fn draft(number: usize) -> String {
    match number {
        LONG => {
            let lines = (0..LINES).map(|line| format!("Line {line} of the draft.\n"));
            lines.collect()
        }
        FOREIGN => "שלום עולם, זו תשובה ארוכה מאוד. مرحبا بالعالم\n日本語の文章はとても長いので、行の終わりで折り返される必要があります。これで十分です。\n👩‍👩‍👧 e\u{301}tude".to_owned(),
        number => format!("Dear reader {number:03}."),
    }
}

/// Replies for everything that [`open_items`] starts.
fn script() -> Json {
    let mut replies = Vec::new();
    for number in 0..MAILS {
        let subject = subject(number);
        let mut triage = triage_of(&subject, "respond");
        let mut answer = wants(json!([sends(&draft(number))]));
        triage["expect"] = json!(subject);
        answer["expect"] = json!(subject);
        replies.extend([triage, answer]);
    }
    replies.push(wants(json!([done()])));
    let question = json!({ "at": "initial", "text": "Is ordering required?" });
    replies.extend(vec![question; ANALYSES]);
    for _ in 0..SHEETS {
        let code =
            "new_sheet('Counts', table('Sales').groupby('Product').size().reset_index(name='n'))";
        replies.push(json!({ "at": "planner_node", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": code } }] }));
        replies.push(json!({ "at": "planner_node", "expect": "changed: Counts", "text": "Finish: Four products." }));
    }
    for _ in 0..PAGES {
        replies.extend(pages("file-structure", &[62], &[3]).into_iter().take(3));
    }
    replies.into()
}

/// Two hundred items of all five agents, and the server that one of them calls.
fn open_items() -> (Workdir, Server) {
    let server = Server::start(server::audius);
    let workdir = with_sales(&script());
    repository(&workdir.path(""));
    point(&workdir, &[&server]);
    let mails: Vec<_> = (0..MAILS)
        .map(|number| {
            let who = format!("who{number:03}@example.com");
            mail(&format!("{number}@x"), &who, &subject(number), "When?")
        })
        .collect();
    fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let sheet = [
        "sheet",
        "sales.xlsx",
        "--instruction",
        "Count each Product in a new sheet",
    ];
    let pauses: [(&[&str], usize); 4] = [
        (
            &["analyze", "--query", "Which queue?", "--inputs", "./notes"],
            ANALYSES,
        ),
        (&sheet, SHEETS),
        (
            &["docs", "repo", "--agents", "file-structure", "--gate"],
            PAGES,
        ),
        (&["atris", "favorite track D7KyD user_id=nlGNe"], CALLS),
    ];
    for (args, count) in pauses {
        for _ in 0..count {
            let ran = workdir.run(args, "");
            assert_eq!(ran.code(), Some(3), "{args:?}: {ran:?}");
        }
    }
    (workdir, server)
}

/// The screen once it no longer changes, without what differs each time.
fn settled(terminal: &Terminal) -> String {
    let mut before = String::new();
    loop {
        let screen = steady(&terminal.screen());
        if screen == before {
            return screen;
        }
        before = screen;
        thread::sleep(10 * LOOK);
    }
}

/// A screen without ids and ages. Lines without them stay as they are, blank for blank.
fn steady(screen: &str) -> String {
    let lines = screen.lines().map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        if line.contains('👩') {
            // Versions of tmux differ in how they draw signs that are joined.
            return "(signs that are joined)".to_owned();
        }
        if !words.iter().any(|word| is_id(word)) {
            return line.to_owned();
        }
        let steady = words.iter().enumerate().map(|(at, word)| match *word {
            word if is_id(word) || at > 0 && words[at - 1] == "thread" => "ID",
            word if is_age(word) => "AGE",
            word if word.chars().all(|c| c == '─') => "─",
            word => word,
        });
        steady.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_id(word: &str) -> bool {
    let is_hex = |c: char| c == '-' || c.is_ascii_hexdigit();
    word.len() >= 6 && word.chars().all(is_hex)
}

/// Such as `40s` or `2m`.
fn is_age(word: &str) -> bool {
    let number = word.trim_end_matches(['s', 'm', 'h']);
    number.len() + 1 == word.len() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn two_hundred_items_of_five_agents_are_walked_through_filtered_read_and_answered() {
    let (workdir, _server) = open_items();
    let ids = workdir.items();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 200);
    let one = inbox(&workdir, "one", [80, 24]);
    let other = inbox(&workdir, "other", [120, 40]);
    one.until("200 open questions");
    other.until("200 open questions");

    // Every item is in the list, in the order of the questions.
    for (place, id) in ids.iter().enumerate() {
        let screen = one.until(&format!(">  {id} "));
        let wide = screen.lines().find(|line| line.width() > 80);
        assert_eq!(wide, None, "{screen}");
        if place + 1 < ids.len() {
            one.presses("j");
        }
    }
    one.presses("g");

    // What each agent asks reads like the thing itself.
    for (agent, text) in [
        ("analyze", "Is ordering required?"),
        ("sheet", "Counts"),
        ("docs", "Round 1, question 3?"),
        ("atris", "POST http://"),
        ("email_assistant", "Dear reader 000."),
    ] {
        one.presses("/");
        one.until("Show only");
        one.types(agent);
        one.until(&format!("only “{agent}”"));
        one.until(text);
        one.presses("Escape");
        one.until_without("only “");
    }

    // Words that are wide or run from right to left stay in their columns, at any size.
    one.presses("/");
    one.types(&subject(FOREIGN));
    for size in [[80, 24], [50, 30], [100, 20], [80, 24]] {
        one.resizes(size);
        let screen = one.until("折り返");
        let wide = screen
            .lines()
            .find(|line| line.width() > usize::from(size[0]));
        assert_eq!(wide, None, "{screen}");
        assert!(
            screen.contains("שלום עולם") && screen.contains("مرحبا"),
            "{screen}"
        );
    }
    one.presses("Escape");
    one.until_without("only “");
    let third = inbox(&workdir, "third", [80, 24]);
    third.until("200 open questions");
    third.presses("/");
    third.until("Show only");
    third.types(&subject(FOREIGN));
    third.until("折り返");
    let screen = settled(&third);
    settings().bind(|| insta::assert_snapshot!("inbox-screen-foreign", screen));
    drop(third);

    // Ten thousand lines are read before they can be sent.
    one.presses("/");
    one.types(&subject(LONG));
    one.until("Line 3 of the draft.");
    one.presses("a");
    one.until("Read it to its end first");
    for _ in 0..40 {
        one.presses_often("Space", 50);
    }
    one.until("read in full");
    assert!(sent(&workdir).is_empty());
    one.presses("a");
    one.until("accept?");
    one.presses("Enter");
    one.until("sent 1 message");
    let mails = sent(&workdir);
    assert_eq!(mails.len(), 1);
    assert!(mails[0].contains("Line 0 of") && mails[0].contains("Line 9999 of"));
    one.until("199 open questions");
    other.until("199 open questions");
    assert_eq!(workdir.items().len(), 199);
}

/// Stands in front of a server, and can die and come back.
struct Relay {
    address: SocketAddr,
    is_up: Arc<AtomicBool>,
    links: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            is_up: Arc::new(AtomicBool::new(true)),
            links: Arc::default(),
        };
        let (is_up, links, server) = (relay.is_up.clone(), relay.links.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if !is_up.load(Ordering::SeqCst) {
                    continue;
                }
                let there = TcpStream::connect(&server).unwrap();
                let ends = [client, there];
                for (from, to) in [(0, 1), (1, 0)] {
                    let mut from = ends[from].try_clone().unwrap();
                    let mut to = ends[to].try_clone().unwrap();
                    thread::spawn(move || {
                        // Broken off when it dies, which is what this is about.
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                links.lock().unwrap().extend(ends);
            }
        });
        relay
    }

    fn dies(&self) {
        self.is_up.store(false, Ordering::SeqCst);
        for link in self.links.lock().unwrap().drain(..) {
            let _ = link.shutdown(Shutdown::Both);
        }
    }

    fn comes_back(&self) {
        self.is_up.store(true, Ordering::SeqCst);
    }
}

/// A draft that waits in a store behind a relay, and the inbox that shows it.
struct DyingStore {
    workdir: Workdir,
    relay: Relay,
    terminal: Terminal,
    /// The short id of the draft.
    item: String,
    _database: Database,
}

impl DyingStore {
    fn new() -> Self {
        let database = Database::new();
        let store = database.store();
        let (server, _) = store.split_once('@').unwrap().1.split_once('/').unwrap();
        let relay = Relay::before(server);
        let store = store.replace(server, &relay.address.to_string());
        let workdir = with_one_approval().with_environment("ARCHIE_STORE", &store);
        let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        let item = workdir.items().remove(0);
        let terminal = inbox(&workdir, "one", [80, 24]);
        terminal.until("read in full");
        Self {
            workdir,
            relay,
            terminal,
            item,
            _database: database,
        }
    }

    fn accepts(&self) {
        self.terminal.presses("a");
        self.terminal.until("accept?");
        self.terminal.presses("Enter");
    }

    fn comes_back_and_the_draft_is_sent_once(&self) {
        assert!(sent(&self.workdir).is_empty());
        self.relay.comes_back();
        self.terminal.until_without("still trying");
        self.accepts();
        self.terminal.until("sent 1 message");
        assert_eq!(sent(&self.workdir).len(), 1);
    }
}

#[test]
fn a_store_that_dies_is_told_and_the_screen_stays_and_takes_keys() {
    let store = DyingStore::new();
    store.relay.dies();
    let screen = store.terminal.until("still trying");
    assert!(screen.contains("Q4 report?"), "{screen}");
    assert!(screen.contains("Friday."), "{screen}");
    store.terminal.presses("?");
    store.terminal.until("any key: back");
    store.terminal.presses("Escape");
    store.comes_back_and_the_draft_is_sent_once();
}

#[test]
fn an_answer_that_a_dead_store_did_not_take_leaves_the_item_open() {
    let store = DyingStore::new();
    store.relay.dies();
    store.terminal.until("still trying");
    store.accepts();
    // The list tells the same trouble; what became of the answer begins with the item.
    store.terminal.until(&format!("{}: ", store.item));
    store.terminal.until("the store did not answer");
    store.comes_back_and_the_draft_is_sent_once();
}
