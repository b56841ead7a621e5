//! `archie erase`, while a server over the same database goes on.

use std::fs;
use std::path::Path;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value as Json, json};

use crate::kit::Workdir;
use crate::serve::ServeProcess;

/// A caller of a tenant.
struct Caller {
    server: String,
    key: String,
}

impl Caller {
    async fn send(&self, method: Method, path: &str, body: String) -> (StatusCode, Json) {
        let sent = Client::new()
            .request(method, format!("http://{}{path}", self.server))
            .header("x-api-key", &self.key)
            .header("content-type", "application/json")
            .body(body)
            .send();
        let reply = sent.await.unwrap();
        let status = reply.status();
        let text = reply.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    async fn post(&self, path: &str, body: Json) -> Json {
        let (status, json) = self.send(Method::POST, path, body.to_string()).await;
        assert!(status.is_success(), "{path}: {status} {json}");
        json
    }

    async fn put(&self, path: &str, body: String) {
        let (status, json) = self.send(Method::PUT, path, body).await;
        assert!(status.is_success(), "{path}: {status} {json}");
    }
}

/// Stores something of each kind for a tenant, with its marker.
async fn fill(caller: &Caller, marker: &str) {
    let note = json!({ "note": marker });
    let thread = caller.post("/threads", json!({ "metadata": note })).await;
    let thread = thread["thread_id"].as_str().unwrap();
    let file = format!("/superstep/threads/{thread}/files/{marker}.txt");
    caller.put(&file, marker.to_owned()).await;
    let item = json!({ "namespace": ["notes"], "key": marker, "value": note });
    caller.put("/store/items", item.to_string()).await;
    let assistant = json!({ "graph_id": "analyze", "name": marker });
    caller.post("/assistants", assistant).await;
    let cron = json!({
        "assistant_id": "analyze",
        "schedule": "0 0 1 1 *",
        "input": { "userInput": marker },
    });
    caller.post("/runs/crons", cron).await;
}

fn is_below(folder: &Path, marker: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let in_name = name.to_str().unwrap().contains(marker);
        in_name
            || match entry.file_type().unwrap().is_dir() {
                true => is_below(&entry.path(), marker),
                false => {
                    let bytes = fs::read(entry.path()).unwrap();
                    let mut parts = bytes.windows(marker.len());
                    parts.any(|part| part == marker.as_bytes())
                }
            }
    })
}

#[tokio::test]
async fn a_tenant_is_erased_next_to_a_server_and_the_others_stay() {
    let workdir = Workdir::scripted(&json!([]));
    let home = workdir.path("home");
    fs::write(workdir.path("policy.json"), r#"{ "api_keys": true }"#).unwrap();
    let key_of = |tenant| {
        let arguments = [
            "keys",
            "create",
            "--principal",
            "program",
            "--tenant",
            tenant,
        ];
        let permissions = ["--permissions", "read,run,edit,admin"];
        let created = workdir.run(&[&arguments[..], &permissions].concat(), "");
        assert_eq!(created.code(), Some(0), "{created:?}");
        created.out().trim().to_owned()
    };
    let keys = ["acme", "globex"].map(key_of);
    let server = ServeProcess::with(workdir.command(), &["--auth", "policy.json"]);
    let [acme, globex] = keys.map(|key| Caller {
        server: server.address.clone(),
        key,
    });
    fill(&acme, "marker-of-acme").await;
    fill(&globex, "marker-of-globex").await;
    // What an agent wrote for a thread that was deleted since.
    let late = home.join("sheets/tenant.acme/late");
    fs::create_dir_all(&late).unwrap();
    fs::write(late.join("book.xlsx"), "marker-of-acme").unwrap();
    assert!(is_below(&home, "marker-of-acme"));

    let asked = workdir.run(&["erase", "acme"], "n\n");
    assert!(asked.out().contains("nothing was erased"), "{asked:?}");
    let erased = workdir.json(&["erase", "acme", "--yes", "--json"]);
    for (kind, count) in [
        ("threads", 1),
        ("files", 2),
        ("items", 1),
        ("crons", 1),
        ("apiKeys", 1),
        ("runs", 0),
    ] {
        assert_eq!(erased[kind], count, "{kind}: {erased}");
    }
    assert_eq!(
        (&erased["tenant"], &erased["complete"]),
        (&json!("acme"), &json!(true))
    );
    assert!(!is_below(&home, "marker-of-acme"));
    let audited = workdir.json(&["audit", "list", "--tenant", "acme", "--json"]);
    assert_eq!(audited[0]["action"], "tenant.erase", "{audited}");
    assert_eq!(audited[1]["action"], "tenant.erased", "{audited}");
    assert_eq!(audited[1]["detail"]["receipt"]["threads"], 1, "{audited}");
    let search = || "{}".to_owned();
    let refused = acme.send(Method::POST, "/threads/search", search()).await;
    assert_eq!(refused.0, StatusCode::UNAUTHORIZED);

    assert!(is_below(&home, "marker-of-globex"));
    let found = globex.post("/threads/search", json!({})).await;
    assert_eq!(found[0]["metadata"]["note"], "marker-of-globex");
    let again = workdir.run(&["erase", "acme", "--yes"], "");
    assert!(again.out().contains("there was nothing"), "{again:?}");
}

#[test]
fn what_is_not_a_tenant_is_not_erased() {
    let workdir = Workdir::scripted(&json!([]));
    let outside = workdir.path("outside");
    fs::create_dir(&outside).unwrap();
    for (name, why) in [
        ("", "the unnamed tenant"),
        ("/../../../outside", "is not a tenant name"),
        ("a b", "is not a tenant name"),
    ] {
        let ran = workdir.run(&["erase", name, "--yes"], "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
        assert!(ran.err().contains(why), "{ran:?}");
    }
    assert!(outside.exists());
}
