//! The acceptance of `atris`, with the real program: asked, answered, debugged, watched, offline, killed.

use std::fs;

use serde_json::{Value as Json, json};
use superstep_conformance::services;

use super::server::{self, Server, ServerReply, track};
use crate::kit::{Ran, Workdir};

const TRENDING: &str = "What are the trending tracks on Audius?";

/// A desk whose Audius is behind these servers.
fn workdir(servers: &[&Server], replies: &Json) -> Workdir {
    let workdir = Workdir::scripted(replies);
    point(&workdir, servers);
    workdir
}

pub(crate) fn point(workdir: &Workdir, servers: &[&Server]) {
    let hosts: Vec<String> = servers.iter().map(|server| server.host()).collect();
    let mut args = vec!["api", "add", "audius", "--name", "audius"];
    hosts
        .iter()
        .for_each(|host| args.extend(["--allow-host", host]));
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
}

fn ok(ran: &Ran) -> String {
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    ran.out()
}

#[test]
fn the_trending_question_is_answered_and_shows_what_each_node_wrote() {
    let server = Server::start(server::audius);
    let workdir = workdir(&[&server], &json!([]));
    let out = ok(&workdir.run(&["atris", TRENDING, "--debug"], ""));
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].starts_with("extract_category_node")
            && lines[0].contains("+queryType trending_tracks")
            && lines[0].contains("+categories 2"),
        "{out}"
    );
    assert!(
        lines[4].starts_with("execute_request_node")
            && lines[4].contains("GET /v1/tracks/trending?time=week  200  12 items"),
        "{out}"
    );
    assert!(
        lines[5].starts_with("reset_state_node") && lines[5].contains("-query"),
        "{out}"
    );
    assert_eq!(
        &lines[6..8],
        [
            "Here are the top 10 trending tracks:",
            "1. \"Example Track\" by Example Artist (1,234 plays)"
        ],
        "{out}"
    );
}

#[test]
fn a_missing_value_is_asked_for_in_the_terminal() {
    let server = Server::start(server::audius);
    let workdir = workdir(&[&server], &json!([]));
    let out = ok(&workdir.run(&["atris", "Show track"], "D7KyD\n"));
    assert!(
        out.contains("track_id?") && out.contains("\"Track 1\" by Artist 1"),
        "{out}"
    );
    let left = workdir.run(&["atris", "Show track"], "");
    assert_eq!(left.code(), Some(3), "{left:?}");
    let inbox = workdir.json(&["inbox", "--json"]);
    assert_eq!(
        (&inbox[0]["kind"], &inbox[0]["request"]["parameter"]),
        (&json!("missing_value"), &json!("track_id"))
    );
    let ran = workdir.run(&["resume", inbox[0]["thread"].as_str().unwrap()], "D7KyD\n");
    assert!(ok(&ran).contains("\"Track 1\" by Artist 1"), "{ran:?}");
}

#[test]
fn json_is_the_result_and_nothing_else() {
    let server = Server::start(server::audius);
    let workdir = workdir(&[&server], &json!([]));
    let told = workdir.json(&["atris", TRENDING, "--json"]);
    assert_eq!(
        (&told["bestApi"], &told["selectedHost"]),
        (&json!("trending_tracks"), &json!(server.host()))
    );
    assert_eq!(told["response"]["data"].as_array().unwrap().len(), 10);
    assert_eq!(
        told["requests"],
        json!(["GET /v1/tracks/trending?time=week  200  12 items"])
    );
}

#[test]
fn a_thread_remembers_the_host_and_counts_its_errors() {
    let down = Server::start(|_| ServerReply::Json(503, json!({})));
    let good = Server::start(server::audius);
    let workdir = workdir(&[&down, &good], &json!([]));
    let thread = workdir.json(&["atris", TRENDING, "--json"])["thread"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..6 {
        let ran = workdir.run(&["atris", "newest tips", "--thread", &thread], "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
    }
    assert_eq!(down.got().len(), 1, "it was asked once and never again");
    let told = workdir.json(&["atris", TRENDING, "--thread", &thread, "--json"]);
    assert_eq!(
        told["errors"],
        json!([{ "node": "execute_request_node", "error": "the server answered 500: out of order", "count": 6, "often": true }])
    );
    assert_eq!(told["error"], Json::Null);
}

#[test]
fn a_write_waits_in_the_inbox_until_somebody_says_yes() {
    let server = Server::start(server::audius);
    let workdir = workdir(&[&server], &json!([]));
    let left = workdir.run(&["atris", "favorite track D7KyD user_id=nlGNe"], "");
    assert_eq!((left.code(), server.writes()), (Some(3), 0), "{left:?}");
    assert!(
        left.out().contains(&format!(
            "POST {}/v1/tracks/D7KyD/favorites?user_id=nlGNe",
            server.url()
        )),
        "{left:?}"
    );
    let ran = workdir.run(&["inbox", &workdir.items()[0], "accept"], "");
    assert!(ok(&ran).contains("answered"), "{ran:?}");
    assert_eq!(
        server.lines(),
        ["POST /v1/tracks/D7KyD/favorites?user_id=nlGNe"]
    );
    let ran = workdir.run(&["resume", &workdir.thread()], "");
    assert!(ok(&ran).contains("Favorite Track"), "{ran:?}");
    assert_eq!(server.writes(), 1);
}

#[test]
fn what_was_answered_once_is_answered_offline() {
    let server = Server::start(server::audius);
    let workdir = workdir(&[&server], &json!([]));
    let online = ok(&workdir.run(&["atris", TRENDING], ""));
    let asked = server.got().len();
    assert_eq!(
        ok(&workdir.run(&["atris", TRENDING, "--offline"], "")),
        online
    );
    let other = workdir.run(&["atris", "newest tips", "--offline"], "");
    assert_eq!(other.code(), Some(1), "{other:?}");
    assert!(other.out().contains("offline"), "{other:?}");
    let write = workdir.run(
        &["atris", "favorite track D7KyD user_id=nlGNe", "--offline"],
        "accept\n",
    );
    assert!(
        write.out().contains("offline: nothing is changed"),
        "{write:?}"
    );
    assert_eq!(server.got().len(), asked, "nothing went out");
}

#[test]
fn a_watch_says_what_came_and_what_went_also_after_it_was_left() {
    let server = Server::start({
        let looks = std::sync::atomic::AtomicUsize::new(0);
        move |_| {
            let first = looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            ServerReply::Json(
                200,
                json!({ "data": (first..first + 10).map(track).collect::<Vec<_>>() }),
            )
        }
    });
    let workdir = workdir(&[&server], &json!([]));
    let ran = workdir.run(
        &[
            "atris", "watch", TRENDING, "--every", "50ms", "--looks", "2",
        ],
        "",
    );
    let out = ok(&ran);
    assert!(
        out.starts_with("Here are the top 10 trending tracks:"),
        "{out}"
    );
    assert!(
        out.contains("\n+ Track 11 (D7Ky11)\n- Track 1 (D7Ky1)\n"),
        "{out}"
    );
    let id = workdir.thread();
    // The deadline passed while nobody was there.
    let ran = workdir.run(&["atris", "watch", "--resume", &id, "--looks", "1"], "");
    assert_eq!(ok(&ran), "+ Track 12 (D7Ky12)\n- Track 2 (D7Ky2)\n");
    let ran = workdir.run(&["resume", &id], "stop\n");
    assert!(ok(&ran).contains("stopped after 3 looks"), "{ran:?}");
    assert_eq!(server.got().len(), 3);
}

#[test]
fn an_api_is_added_asked_shown_and_removed() {
    let server = Server::start(|_| ServerReply::Json(200, json!([{ "id": 7, "name": "Rex" }])));
    let workdir = Workdir::scripted(&json!([]));
    let document = "openapi: 3.0.3\ninfo: {title: Pets}\nservers: [{url: 'https://pets.example.com/v1'}]\npaths:\n  /pets:\n    get: {operationId: listPets, summary: List all pets, tags: [pets]}\n";
    fs::write(workdir.path("pets.yaml"), document).unwrap();
    let refused = workdir.run(&["api", "add", "pets.yaml", "--name", "pets"], "");
    assert_eq!(
        refused.code(),
        Some(1),
        "nobody allowed the host: {refused:?}"
    );
    ok(&workdir.run(
        &[
            "api",
            "add",
            "pets.yaml",
            "--name",
            "pets",
            "--allow-host",
            &server.host(),
        ],
        "",
    ));
    let out = ok(&workdir.run(&["atris", "--api", "pets", "list all pets"], ""));
    assert_eq!(out, "List all pets (1):\n1. Rex (7)\n");
    assert_eq!(
        server.got()[0].path,
        "/v1/pets?limit=10".trim_end_matches("?limit=10")
    );
    assert!(ok(&workdir.run(&["api", "show", "pets"], "")).contains("GET    /pets  List all pets"));
    assert_eq!(
        workdir
            .json(&["api", "list", "--json"])
            .as_array()
            .unwrap()
            .len(),
        2
    );
    ok(&workdir.run(&["api", "remove", "pets"], ""));
    assert_eq!(
        workdir
            .json(&["api", "list", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn hostile_documents_are_not_added_and_nothing_is_fetched() {
    let trap = Server::start(|_| ServerReply::Json(200, json!({})));
    let workdir = Workdir::scripted(&json!([]));
    let paths = json!({ "/a": { "get": {} } });
    let with_server = |url: &str| {
        json!({ "openapi": "3.0.0", "paths": paths, "servers": [{ "url": url }] }).to_string()
    };
    let cases = [
        ("metadata.json", with_server("http://169.254.169.254/latest")),
        ("loopback.json", with_server(&trap.url())),
        ("decimal.json", with_server("http://2130706433/")),
        ("mapped.json", with_server("http://[::ffff:127.0.0.1]/")),
        ("named.json", with_server("http://localhost/")),
        ("internal.json", with_server("http://metadata.google.internal/")),
        ("file.json", with_server("file:///etc")),
        ("remote.json", json!({ "openapi": "3.0.0", "paths": { "/a": { "$ref": format!("{}/x", trap.url()) } } }).to_string()),
        ("loop.json", json!({ "openapi": "3.0.0", "paths": { "/a": { "$ref": "#/paths/~1b" }, "/b": { "$ref": "#/paths/~1a" } } }).to_string()),
        ("long.json", " ".repeat(50 * 1024 * 1024)),
    ];
    for (name, text) in &cases {
        fs::write(workdir.path(name), text).unwrap();
        let ran = workdir.run(&["api", "add", name, "--name", "evil"], "y\n");
        assert_eq!(ran.code(), Some(1), "{name}: {ran:?}");
    }
    let fetched = workdir.run(
        &[
            "api",
            "add",
            &format!("{}/openapi.json", trap.url()),
            "--name",
            "evil",
        ],
        "y\n",
    );
    assert_eq!(fetched.code(), Some(1), "{fetched:?}");
    assert_eq!(
        workdir
            .json(&["api", "list", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(trap.got().is_empty());
}

#[test]
fn a_program_that_is_killed_in_a_model_call_goes_on_and_pays_for_one_more() {
    let server = Server::start(server::audius);
    let replies = json!([
        { "at": "extract_params_node", "kill": true },
        { "at": "extract_params_node", "json": { "track_id": "" } }
    ]);
    let workdir = workdir(&[&server], &replies);
    let ran = workdir.run(
        &["atris", "please show me that one track I liked so much"],
        "",
    );
    assert_eq!(ran.code(), None, "{ran:?}");
    let ran = workdir.run(&["resume", &workdir.thread()], "D7KyD\n");
    assert!(ok(&ran).contains("\"Track 1\" by Artist 1"), "{ran:?}");
    assert_eq!(
        (workdir.asked("extract_params_node"), server.got().len()),
        (2, 1)
    );
}

#[test]
fn a_small_real_model_chooses_from_lists_and_whatever_it_chooses_is_a_call_or_a_question() {
    let server = Server::start(server::audius);
    let workdir = Workdir::with_model("openai:smollm2-135m")
        .with_environment("OPENAI_BASE_URL", &services::url("model"));
    point(&workdir, &[&server]);
    let out = ok(&workdir.run(&["atris", TRENDING], ""));
    assert!(
        out.starts_with("Here are the top 10 trending tracks:"),
        "by rule, without the model: {out}"
    );
    for question in [
        "show me music by people I may know",
        "who supports whom with money",
        "what did listeners like lately",
    ] {
        let ran = workdir.run(&["atris", question, "--json"], "");
        assert!([Some(0), Some(1), Some(3)].contains(&ran.code()), "{ran:?}");
        let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
        let has_ended = shown["values"]["query"].is_null();
        let asks = shown["questions"][0]["kind"] == "missing_value";
        assert!(has_ended || asks, "{question}: {shown}");
    }
    assert_eq!(server.writes(), 0);
}
