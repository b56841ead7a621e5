//! The options of the program: the log of states, the health of APIs, keys that are not set, and hosts that must be allowed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value as Json, json};

use super::server::{Server, ServerReply};
use crate::kit::Workdir;

const PETS: &str = "openapi: 3.0.3\ninfo: {title: Pets}\nservers: [{url: 'https://pets.example.com'}]\npaths:\n  /pets:\n    get:\n      operationId: listPets\n      summary: List all pets\n      tags: [pets]\n      responses: {'200': {content: {application/json: {schema: {type: array, items: {type: object, required: [id], properties: {id: {type: integer}}}}}}}}\n  /pets/{petId}:\n    get:\n      operationId: getPet\n      summary: Get a pet\n      tags: [pets]\n      parameters: [{name: petId, in: path, required: true, schema: {type: integer}}]\n";

/// A person's folder with an API of pets behind this server.
fn workdir(server: &Server, more: &[&str]) -> Workdir {
    let workdir = Workdir::scripted(&json!([]));
    fs::write(workdir.path("pets.yaml"), PETS).unwrap();
    let host = server.host();
    let mut args = vec![
        "api",
        "add",
        "pets.yaml",
        "--name",
        "pets",
        "--allow-host",
        &host,
    ];
    args.extend(more);
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    workdir
}

fn pets() -> Server {
    Server::start(|_| ServerReply::Json(200, json!([{ "id": 7, "name": "Rex", "status": "sold" }])))
}

#[test]
fn the_state_before_and_after_each_node_is_logged_without_secrets() {
    let server =
        Server::start(|_| ServerReply::Json(200, json!([{ "id": 7, "name": "tok-12345678" }])));
    let workdir = workdir(&server, &["--key-env", "PETS_TOKEN"])
        .with_environment("PETS_TOKEN", "tok-12345678");
    let args = [
        "atris",
        "@pets/listPets list all pets tok-12345678",
        "--log-state",
        "states.jsonl",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let text = fs::read_to_string(workdir.path("states.jsonl")).unwrap();
    let lines: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let nodes: Vec<&str> = lines
        .iter()
        .map(|line| line["node"].as_str().unwrap())
        .collect();
    assert_eq!(
        nodes,
        [
            "extract_category_node",
            "get_apis_node",
            "select_api_node",
            "extract_params_node",
            "execute_request_node",
            "reset_state_node"
        ]
    );
    for pair in lines.windows(2) {
        assert_eq!(pair[0]["after"], pair[1]["before"]);
    }
    let execute = &lines[4];
    assert_eq!(execute["before"].as_object().unwrap().len(), 22);
    assert_eq!(execute["before"]["response"], Json::Null);
    assert_eq!(execute["after"]["response"][0]["id"], 7);
    assert_eq!(lines[5]["after"]["response"], Json::Null);
    assert!(!text.contains("tok-12345678") && text.contains("[redacted]"));
    let mode = fs::metadata(workdir.path("states.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "only its owner can read it");
}

#[test]
fn health_says_which_host_answers_and_which_key_is_missing() {
    let server = pets();
    let workdir = workdir(&server, &["--key-env", "PETS_TOKEN"]);
    let ran = workdir.run(&["atris", "health", "--api", "pets"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    let out = ran.out();
    assert!(
        out.contains(&format!("pets: {} answers (200)", server.host()))
            && out.contains("pets: the key variable `PETS_TOKEN` is not set"),
        "{out}"
    );
    let workdir = workdir.with_environment("PETS_TOKEN", "tok-12345678");
    let told = workdir.json(&["atris", "health", "--api", "pets", "--json"]);
    assert_eq!(told[0]["hosts"][0]["status"], 200);
    assert_eq!(told[0]["is_key_set"], true);
    assert!(
        server
            .got()
            .iter()
            .all(|got| got.header("authorization").is_none())
    );
}

#[test]
fn a_key_that_is_not_set_is_named_before_the_call_and_in_the_error() {
    let server = Server::start(|_| ServerReply::Json(401, json!({ "message": "who are you" })));
    let workdir = workdir(&server, &["--key-env", "PETS_TOKEN"]);
    let ran = workdir.run(&["atris", "--api", "pets", "list all pets"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.out().contains("who are you; `PETS_TOKEN` is not set"),
        "{ran:?}"
    );
    assert!(
        ran.out()
            .starts_with("`PETS_TOKEN` is not set, so the call has no key\n"),
        "{ran:?}"
    );
}

#[test]
fn a_key_that_the_server_refuses_is_named() {
    let server = Server::start(|_| ServerReply::Json(401, json!({ "message": "who are you" })));
    let with_key = workdir(&server, &["--key-env", "PETS_TOKEN"])
        .with_environment("PETS_TOKEN", "tok-12345678");
    let ran = with_key.run(&["atris", "--api", "pets", "list all pets"], "");
    assert!(
        ran.out()
            .contains("who are you; check the key in `PETS_TOKEN`"),
        "{ran:?}"
    );
    let without = workdir(&server, &[]);
    let ran = without.run(&["atris", "--api", "pets", "list all pets"], "");
    assert!(ran.out().contains("`--key-env VARIABLE`"), "{ran:?}");
}

#[test]
fn an_answer_says_which_call_was_made_and_how_it_differs_from_the_document() {
    let server = Server::start(|_| ServerReply::Json(200, json!([{ "id": "7", "name": "Rex" }])));
    let workdir = workdir(&server, &[]);
    let ran = workdir.run(&["atris", "--api", "pets", "list all pets"], "");
    assert!(
        ran.err().contains("called GET /pets  200  1 items"),
        "{ran:?}"
    );
    assert!(
        ran.err()
            .contains("does not match the document: `[0].id` is of the type string, not integer"),
        "{ran:?}"
    );
}

#[test]
fn a_list_shows_the_status_of_each_thing() {
    let server = pets();
    let workdir = workdir(&server, &[]);
    let ran = workdir.run(&["atris", "--api", "pets", "list all pets"], "");
    assert_eq!(ran.out(), "List all pets (1):\n1. Rex (7), status: sold\n");
}

#[test]
fn a_call_is_chosen_by_an_option() {
    let server = pets();
    let workdir = workdir(&server, &[]);
    let args = [
        "atris",
        "--api",
        "pets",
        "--call",
        "getPet",
        "list all pets 7",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(server.lines(), ["GET /pets/7"]);
}

#[test]
fn an_extraction_that_cannot_be_carried_out_is_refused() {
    let server = pets();
    let workdir = workdir(&server, &[]).with_environment("ARCHIE_MODEL", "");
    let args = [
        "atris",
        "--api",
        "pets",
        "list all pets",
        "--extract",
        "model",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.err().contains("--model"), "{ran:?}");
    let args = [
        "atris",
        "--api",
        "pets",
        "list all pets",
        "--extract",
        "rules",
    ];
    assert_eq!(workdir.run(&args, "").code(), Some(0));
}

#[test]
fn the_refusal_of_a_loopback_host_names_the_option_that_allows_it() {
    let server = pets();
    let workdir = Workdir::scripted(&json!([]));
    let document = PETS.replace("https://pets.example.com", &server.url());
    fs::write(workdir.path("pets.yaml"), document).unwrap();
    let ran = workdir.run(&["api", "add", "pets.yaml", "--name", "pets"], "y\n");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.err()
            .contains(&format!("--allow-host {}", server.host())),
        "{ran:?}"
    );
}

#[test]
fn an_overloaded_host_is_asked_again_after_the_time_that_it_asks_for() {
    let server = Server::start({
        let calls = std::sync::atomic::AtomicUsize::new(0);
        move |_| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => ServerReply::Later(0),
            1 => ServerReply::Later(600),
            _ => ServerReply::Json(200, json!([])),
        }
    });
    let workdir = workdir(&server, &[]);
    let ran = workdir.run(&["atris", "--api", "pets", "list all pets"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.out().contains("asks to wait 600 seconds"), "{ran:?}");
    assert_eq!(
        server.got().len(),
        2,
        "asked again once, then not before its time"
    );
}
