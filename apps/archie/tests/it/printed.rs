//! Sixty texts that steer a terminal, in every place where a stranger's text is printed. The program runs in a real terminal,
//! and every byte that it wrote is read back.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use archie_agent::printable::{json_text, printable};
use serde_json::{Value as Json, json};

use crate::atris::{Server, ServerReply};
use crate::kit::Workdir;
use crate::mail::{mail, mbox, sends, triage_of, wants};
use crate::tmux::{self, Recording, Terminal};

/// What strangers may write. Each goes with its number, so that it is found again.
const PAYLOADS: [&str; 60] = [
    // Operating system commands: clipboard, titles, links, colours, notes, files, prompts.
    "\u{1b}]52;c;cHduZWQ=\u{7}",
    "\u{1b}]52;p;cHduZWQ=\u{1b}\\",
    "\u{1b}]0;pwned\u{7}",
    "\u{1b}]2;pwned\u{1b}\\",
    "\u{1b}]1;pwned\u{7}",
    "\u{1b}]8;;http:evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\",
    "\u{1b}]4;1;#ffffff\u{7}",
    "\u{1b}]10;#000000\u{7}",
    "\u{1b}]11;?\u{7}",
    "\u{1b}]777;notify;pwned;x\u{7}",
    "\u{1b}]9;pwned\u{7}",
    "\u{1b}]1337;File=inline=1:cHduZWQ=\u{7}",
    "\u{1b}]7;file:pwned\u{7}",
    "\u{1b}]133;A\u{7}",
    // Control sequences: erase, move, ask, resize, modes, colours.
    "\u{1b}[2J",
    "\u{1b}[3J",
    "\u{1b}[H",
    "\u{1b}[6n",
    "\u{1b}[c",
    "\u{1b}[5n",
    "\u{1b}[21t",
    "\u{1b}[8;1;1t",
    "\u{1b}[?1049h",
    "\u{1b}[?47h",
    "\u{1b}[?25l",
    "\u{1b}[?2004h",
    "\u{1b}[?1000h",
    "\u{1b}[?1006h",
    "\u{1b}[8mWire-1M\u{1b}[28m",
    "\u{1b}[30;40mWire-1M\u{1b}[0m",
    "\u{1b}[1A\u{1b}[2K",
    "\u{1b}[999D",
    "\u{1b}[4h",
    "\u{1b}[20h",
    "\u{1b}[1;5r",
    "\u{1b}[?6h",
    "\u{1b}[?7l",
    "\u{1b}[>c",
    // Strings: device control, passed through tmux, pictures, programs, privacy, start of string.
    "\u{1b}P$qm\u{1b}\\",
    "\u{1b}Ptmux;\u{1b}\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}\\",
    "\u{1b}Pq#0;2;0;0;0\u{1b}\\",
    "\u{1b}_Ga=T\u{1b}\\",
    "\u{1b}^pwned\u{1b}\\",
    "\u{1b}Xpwned\u{1b}\\",
    // Two bytes: reset, the name of a window, cursor, character sets, test picture, keypad.
    "\u{1b}c",
    "\u{1b}kpwned\u{1b}\\",
    "\u{1b}7\u{1b}8",
    "\u{1b}(0",
    "\u{1b}#8",
    "\u{1b}=",
    // The same in one character.
    "\u{9b}2J",
    "\u{9d}52;c;cHduZWQ=\u{9c}",
    "\u{90}$qm\u{9c}",
    "\u{9f}x\u{9c}\u{98}x\u{9c}\u{9e}x\u{9c}",
    // Writing over what was there, and what is not seen or is seen elsewhere.
    "safe\rEVIL",
    "safe\u{8}\u{8}\u{8}\u{8}EVIL",
    "\u{b}\u{c}\u{e}\u{f}\u{7}\u{7f}",
    "\u{202e}gpj.\u{2066}exe\u{2069}\u{200f}\u{61c}",
    "\u{e0068}\u{e0069}\u{200b}\u{feff}\u{2060}\u{3164}",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
];

/// All of them, with their numbers.
fn payloads() -> Vec<String> {
    let numbered = PAYLOADS.iter().enumerate();
    numbered
        .map(|(at, payload)| format!("P{:02}{payload}q{:02}", at + 1, at + 1))
        .collect()
}

fn joined() -> String {
    payloads().join(" ")
}

/// Nothing of a stranger's reached the terminal, and these were seen as they are.
#[track_caller]
fn is_clean(recording: &Recording, seen: &[String]) {
    let Recording {
        raw,
        screen,
        states,
    } = recording;
    for payload in payloads() {
        assert!(
            !raw.contains(&payload),
            "{payload:?} came through:\n{screen}"
        );
    }
    let own = without_our_own(raw);
    let bad = own.char_indices().find(|(_, c)| {
        !matches!(c, '\n' | '\r' | '\t')
            && (c.is_control() || archie_agent::printable::is_hidden(*c))
    });
    if let Some((at, c)) = bad {
        let around: String = own[at..].chars().take(40).collect();
        panic!("{c:?} came through before {around:?}\n{screen}");
    }
    assert_eq!(states[0], states[1], "the terminal changed:\n{screen}");
    let flat: String = own.split_whitespace().collect();
    for payload in seen {
        let shown: String = printable(payload).split_whitespace().collect();
        assert!(flat.contains(&shown), "{shown} is not seen:\n{screen}");
    }
}

/// The bytes without what the program itself uses: colours, and the spinner that draws over its line.
fn without_our_own(raw: &str) -> String {
    let mut out = String::new();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == ';'));
        let is_own = end.is_some_and(|at| {
            let (numbers, last) = (&after[..at], &after[at..=at]);
            let is_colour = last == "m" && !matches!(numbers, "8" | "28" | "30;40");
            is_colour || matches!((numbers, last), ("" | "2", "K") | ("1", "A" | "B"))
        });
        if !is_own {
            out.push_str("\u{1b}[");
            rest = after;
            continue;
        }
        rest = &after[end.map_or(0, |at| at + 1)..];
    }
    out.push_str(rest);
    out
}

/// Names of files: without the one character that they cannot have.
fn names() -> Vec<String> {
    payloads()
        .iter()
        .map(|name| name.replace('/', "_"))
        .collect()
}

#[test]
fn there_are_sixty_and_they_do_steer_a_terminal() {
    let workdir = Workdir::scripted(&json!([]));
    fs::write(workdir.path("all"), joined()).unwrap();
    let raw = tmux::record(&workdir, "cat all");
    assert_eq!(payloads().len(), 60);
    assert_ne!(raw.states[0], raw.states[1], "this terminal obeys nobody");
    let went_through = std::panic::catch_unwind(|| is_clean(&raw, &[]));
    assert!(went_through.is_err(), "this test would not notice");
}

#[test]
fn analyze_prints_names_of_notes_the_stream_claims_and_titles_visibly() {
    let claim =
        |claim: &String| json!({ "claim": claim, "file": claim, "line": 1, "quote": claim });
    let claims: Vec<Json> = payloads().iter().map(claim).collect();
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": format!("{}\nIs that so?", joined())},
        {"at": "final", "json": { "assumptions": [], "components": claims, "alternatives": [], "decisions": [], "open_questions": [] }}
    ]));
    for name in names() {
        fs::write(workdir.notes().join(format!("{name}.md")), &name).unwrap();
    }
    fs::write(workdir.path("query"), joined()).unwrap();
    let recording = tmux::record(
        &workdir,
        "archie analyze --query \"$(cat query)\" --inputs notes </dev/null\n\
         archie inbox </dev/null\narchie threads\n\
         id=$(archie threads --json | sed 's/.*\"thread\":\"\\([^\"]*\\)\".*/\\1/')\n\
         archie show $id\n\
         echo DONE | archie resume $id\n\
         archie show $id\narchie history $id\narchie trace $id\narchie diff $id@1 $id </dev/null\narchie show $id --json\narchie trace $id --json\n\
         rm notes/P01*; echo | archie analyze --recheck $id\n\
         archie graph analyze\narchie doctor\narchie show \"$(cat query)\"\narchie --\"$(cat query)\"\narchie resume nobody",
    );
    let mut seen = payloads();
    // A long line is cut in the middle of the last.
    seen.truncate(58);
    is_clean(&recording, &seen);
    for name in &names()[..58] {
        assert!(
            recording
                .raw
                .contains(&archie_agent::printable::one_line(name)),
            "{name:?}"
        );
    }
    // The page that was written holds none of them either.
    let page = workdir.result();
    assert_eq!(printable(&page), page);
}

#[test]
fn errors_of_a_model_server_and_log_lines_are_printed_visibly() {
    let said = joined();
    let server = Server::start(move |_| {
        ServerReply::Json(
            400,
            json!({ "error": { "message": said, "type": said, "code": said } }),
        )
    });
    let workdir = Workdir::with_model("openai:evil")
        .with_environment("OPENAI_BASE_URL", &server.url())
        .with_environment("OPENAI_API_KEY", "k");
    let recording = tmux::record(
        &workdir,
        "archie analyze --query x --inputs notes </dev/null\nARCHIE_LOG=trace archie doctor\n\
         ARCHIE_LOG=debug archie analyze --query x --inputs notes </dev/null\narchie threads\n\
         id=$(archie threads --json | sed 's/.*\"thread\":\"\\([^\"]*\\)\".*/\\1/')\narchie show $id\narchie trace $id",
    );
    is_clean(&recording, &payloads()[..2]);
}

#[test]
fn sheet_prints_output_of_code_names_of_pictures_and_cells_visibly() {
    let prints: String = payloads()
        .iter()
        .map(|payload| format!("print({})\n", json!(payload)))
        .collect();
    let pictures: String = names()
        .iter()
        .map(|name| format!("try:\n    open({}, 'wb').write(b'\\x89PNG')\nexcept Exception as e:\n    print(e)\n", json!(format!("{name}.png"))))
        .collect();
    let cells: String = payloads()
        .iter()
        .enumerate()
        .map(|(at, payload)| {
            let visible: String = payload.chars().filter(|c| !c.is_ascii_control()).collect();
            format!("workbook['Sales']['H{}'] = {}\n", at + 1, json!(visible))
        })
        .collect();
    let code = |code: String| json!({ "at": "planner_node", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": code } }] });
    let workdir = crate::sheet::with_sales(&json!([
        code(prints), code(pictures), code(cells),
        code(format!("raise Exception({})", json!(joined()))),
        { "at": "planner_node", "text": format!("Finish: {}", joined()) }
    ]));
    let recording = tmux::record(
        &workdir,
        "archie sheet sales.xlsx --instruction 'Say what the cells say' --output-dir out --yes\n\
         archie threads\nid=$(archie threads --json | sed 's/.*\"thread\":\"\\([^\"]*\\)\".*/\\1/')\narchie show $id\narchie trace $id\narchie inbox </dev/null",
    );
    is_clean(&recording, &payloads());
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert_eq!(printable(&report), report);
}

#[test]
fn docs_prints_names_of_projects_files_and_the_stream_visibly() {
    let workdir = Workdir::scripted(&json!([
        { "at": "file-structure-InitialAnalysis", "text": joined() },
        { "at": "file-structure-InitialAnalysis", "text": joined() },
        { "at": "file-structure-EvaluateClarity", "json": { "completeness": 90, "clarity": 90, "depth": 90, "accuracy": 90 } },
        { "at": "dependency-analyzer-InitialAnalysis", "text": joined() },
        { "at": "dependency-analyzer-InitialAnalysis", "text": joined() },
        { "at": "dependency-analyzer-EvaluateClarity", "json": { "completeness": 90, "clarity": 90, "depth": 90, "accuracy": 90 } }
    ]));
    let repo = crate::docs::repository(&workdir.path(""));
    let package =
        json!({ "name": joined(), "version": joined(), "dependencies": { joined(): joined() } });
    fs::write(repo.join("package.json"), package.to_string()).unwrap();
    fs::remove_file(repo.join("Cargo.toml")).unwrap();
    for name in names() {
        fs::create_dir(repo.join(&name)).unwrap();
        fs::write(
            repo.join(&name).join(format!("{name}.py")),
            format!("# {name}\n"),
        )
        .unwrap();
    }
    let recording = tmux::record(
        &workdir,
        "archie docs repo --agents file-structure,dependency-analyzer --clarity-threshold 10 --output out </dev/null\n\
         rm -r repo/P07*\narchie docs repo --check --output out\narchie threads",
    );
    assert!(recording.raw.contains("saved"), "{}", recording.screen);
    is_clean(&recording, &payloads()[..1]);
    for page in [
        "index.md",
        "file-structure.md",
        "dependency-analyzer.md",
        "index.html",
    ] {
        let text = fs::read_to_string(workdir.path("out").join(page)).unwrap();
        assert_eq!(printable(&text), text, "{page}");
    }
}

#[test]
fn atris_prints_answers_servers_and_documents_visibly() {
    let server = Server::start(|got| {
        if got.path.starts_with("/v1/tips") {
            return ServerReply::Json(500, json!({ "message": joined(), "error": joined() }));
        }
        let tracks: Vec<Json> = payloads()
            .iter()
            .map(|text| json!({ "id": text, "title": text, "user": { "name": text, "handle": text }, "play_count": 1 }))
            .collect();
        ServerReply::Json(200, json!({ "data": tracks }))
    });
    let workdir = Workdir::scripted(&json!([]));
    let host = server.host();
    let paths: serde_json::Map<String, Json> = payloads()
        .iter()
        .map(|text| {
            let call = json!({ "get": { "operationId": text, "summary": text, "tags": [text], "responses": {} } });
            (format!("/{text}"), call)
        })
        .collect();
    let document = json!({
        "openapi": "3.0.0", "info": { "title": joined(), "version": "1" },
        "servers": [{ "url": server.url() }, { "url": format!("http://evil.example/{}", joined()) }], "paths": paths
    });
    fs::write(workdir.path("api.json"), document.to_string()).unwrap();
    let recording = tmux::record(
        &workdir,
        &format!(
            "archie api add audius --name audius --allow-host {host}\n\
             archie atris 'What are the trending tracks on Audius?' --debug </dev/null\narchie atris 'newest tips' --debug </dev/null\n\
             archie atris 'What are the trending tracks on Audius?' --json </dev/null\n\
             archie api add api.json --name evil --allow-host {host} </dev/null\narchie api list\narchie api show evil\n\
             archie api add api.json --name other </dev/null\narchie threads"
        ),
    );
    is_clean(&recording, &payloads()[..10]);
}

#[test]
fn mail_prints_subjects_senders_bodies_and_drafts_visibly() {
    let encoded = |text: &str| {
        use base64::Engine as _;
        format!(
            "=?utf-8?B?{}?=",
            base64::prelude::BASE64_STANDARD.encode(text)
        )
    };
    let mut replies = Vec::new();
    let mut mails = Vec::new();
    for (at, payload) in payloads().iter().enumerate() {
        let from = format!("{} <m{at}@example.com>", encoded(payload));
        mails.push(mail(&format!("m{at}@x"), &from, &encoded(payload), payload));
        let sorted = triage_of(&format!("m{at}@example.com"), "respond");
        replies.extend([sorted, wants(json!([sends(payload)]))]);
    }
    let workdir = Workdir::scripted(&json!(replies));
    fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
    let recording = tmux::record(
        &workdir,
        "archie mail ingest ./mbox </dev/null\narchie inbox </dev/null\narchie inbox --json --limit 100 </dev/null\narchie threads\n\
         for id in $(archie threads --json | tr ',' '\\n' | sed -n 's/.*\"thread\":\"\\([^\"]*\\)\".*/\\1/p' | head -3); do\n\
         archie show $id\narchie resume $id </dev/null\narchie trace $id\ndone",
    );
    is_clean(&recording, &[]);
    // A draft is whole in JSON, and still its own value.
    for payload in payloads() {
        let spelled = json_text(&json!(payload));
        assert!(
            recording.raw.contains(spelled.trim_matches('"')),
            "{spelled}"
        );
    }
}

/// A file that another process writes, once this is in it.
fn written(path: &Path, awaited: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let bytes = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains(awaited) {
            return text;
        }
        assert!(
            Instant::now() < deadline,
            "`{awaited}` never came: {text:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_shell_completes_no_name_that_steers_the_terminal() {
    let workdir = Workdir::scripted(&json!([]));
    fs::create_dir(workdir.path("bad")).unwrap();
    for name in names() {
        fs::write(workdir.path("bad").join(format!("x{name}")), "").unwrap();
    }
    fs::write(workdir.path("bad/xplain"), "").unwrap();
    let raw = workdir.path("raw");
    let terminal = Terminal::open(&workdir);
    terminal.shows("archie>");
    let pipe = format!("cat >'{}'", raw.display());
    assert!(
        terminal
            .tmux()
            .args(["pipe-pane", &pipe])
            .status()
            .unwrap()
            .success()
    );
    terminal
        .tmux()
        .args(["send-keys", "-l", "sheet bad/x"])
        .status()
        .unwrap();
    terminal.presses("Tab");
    terminal.shows("archie> sheet bad/xplain");
    let text = written(&raw, "plain");
    for payload in payloads() {
        assert!(!text.contains(&payload), "{payload:?}");
    }
}
