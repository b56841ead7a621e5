//! Every resource, as clients use it.

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};

use crate::kit::Client;

fn say(text: &str) -> Json {
    json!({ "assistant_id": "chat", "input": { "messages": [{ "role": "user", "content": text }] } })
}

#[tokio::test]
async fn a_run_is_awaited_and_its_state_and_history_are_read() {
    let client = Client::new().await;
    let thread = client.thread().await;
    assert_eq!(client.get(&thread).await.ok()["values"], Json::Null);
    assert_eq!(
        client.get(&format!("{thread}/state")).await.ok()["values"],
        json!({})
    );
    let reply = client.post(&format!("{thread}/runs/wait"), say("hi")).await;
    assert!(
        reply
            .header("content-location")
            .unwrap()
            .starts_with(&thread)
    );
    assert!(reply.header("location").unwrap().ends_with("/join"));
    let values = reply.ok();
    let messages = values["messages"].as_array().unwrap();
    assert_eq!(messages[0]["type"], "human");
    assert_eq!(messages[1]["content"], "You said: hi");
    assert!(
        messages
            .iter()
            .all(|message| message.get("labels").is_none())
    );

    let state = client.get(&format!("{thread}/state")).await.ok();
    assert_eq!(state["values"], values);
    assert_eq!(state["next"], json!([]));
    assert_eq!(state["metadata"]["source"], "loop");
    let history = client.history(&thread).await;
    let steps: Vec<_> = history
        .iter()
        .map(|past| &past["metadata"]["step"])
        .collect();
    assert_eq!(steps, [&json!(1), &json!(0), &json!(-1)]);
    assert_eq!(history[1]["next"], json!(["reply"]));
    assert_eq!(history[2]["next"], json!(["__start__"]));
    assert_eq!(history[2]["values"], json!({ "messages": [], "notes": [] }));
    for pair in history.windows(2) {
        assert_eq!(pair[0]["parent_checkpoint"], pair[1]["checkpoint"]);
    }
    let found = client.get(&thread).await.ok();
    assert_eq!(found["status"], "idle");
    assert_eq!(found["metadata"]["graph_id"], "chat");
}

#[tokio::test]
async fn a_run_from_an_older_checkpoint_is_a_branch() {
    let client = Client::new().await;
    let thread = client.thread().await;
    client.wait(&thread, say("one")).await;
    let first = client.get(&format!("{thread}/state")).await.ok();
    client.wait(&thread, say("two")).await;
    let mut body = say("other");
    body["checkpoint"] = json!({ "checkpoint_id": first["checkpoint_id"] });
    let values = client.wait(&thread, body).await;
    let messages = values["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[2]["content"], "other");
    let mut foreign = say("other");
    foreign["checkpoint_id"] = json!("0190a6b2-0000-7000-8000-000000000001");
    let refused = client.post(&format!("{thread}/runs"), foreign).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_first_message_is_edited_as_a_chat_does() {
    let client = Client::new().await;
    let thread = client.thread().await;
    client.wait(&thread, say("one")).await;
    client.wait(&thread, say("two")).await;
    let history = client.history(&thread).await;
    let first = history.last().unwrap();
    assert_eq!(first["next"], json!(["__start__"]));
    let mut body = say("other");
    body["checkpoint"] = first["checkpoint"].clone();
    let values = client.wait(&thread, body).await;
    let messages = values["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["content"], "other");
    // Both branches are there, and both begin with nothing before them.
    let history = client.history(&thread).await;
    let begins: Vec<_> = history
        .iter()
        .filter(|past| past["parent_checkpoint"].is_null())
        .collect();
    assert_eq!(begins.len(), 2);
}

#[tokio::test]
async fn a_thread_that_an_update_leaves_midway_is_interrupted() {
    let client = Client::new().await;
    let thread = client.thread().await;
    client.wait(&thread, say("hi")).await;
    let input = json!({ "values": { "topic": "tea" }, "as_node": "__start__" });
    client.post(&format!("{thread}/state"), input).await.ok();
    assert_eq!(client.get(&thread).await.ok()["status"], "interrupted");
    let history = client.history(&thread).await;
    assert_eq!(history[0]["next"], json!(["reply"]));
    assert_eq!(history[0]["metadata"]["source"], "update");
    assert_eq!(history[0]["parent_checkpoint"], history[1]["checkpoint"]);
    let step = |past: &Json| past["metadata"]["step"].as_i64().unwrap();
    assert_eq!(step(&history[0]), step(&history[1]) + 1);
    let resume = json!({ "assistant_id": "chat", "input": null });
    client.wait(&thread, resume).await;
    assert_eq!(client.get(&thread).await.ok()["status"], "idle");
}

#[tokio::test]
async fn a_page_says_whether_another_follows_and_has_the_interrupts_of_each_thread() {
    let client = Client::new().await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        let thread = client.thread().await;
        let values = client
            .wait(&thread, json!({ "assistant_id": "ask", "input": {} }))
            .await;
        asked.push((thread, values["__interrupt__"][0]["id"].clone()));
    }
    let mut found = Vec::new();
    for (offset, total, next) in [(0, "3", Some("2")), (2, "3", None), (5, "5", None)] {
        let search = json!({
            "status": "interrupted", "sort_by": "created_at", "sort_order": "asc",
            "limit": 2, "offset": offset,
        });
        let page = client.post("/threads/search", search).await;
        assert_eq!(page.header("x-pagination-total"), Some(total));
        assert_eq!(page.header("x-pagination-next"), next);
        for thread in page.ok().as_array().unwrap() {
            let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
            let interrupts = thread["interrupts"].as_object().unwrap();
            let [interrupts] = interrupts.values().collect::<Vec<_>>()[..] else {
                panic!("one task waits: {interrupts:?}");
            };
            found.push((path, interrupts[0]["id"].clone()));
        }
    }
    asked.sort_by(|a, b| a.0.cmp(&b.0));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, asked);
}

#[tokio::test]
async fn an_interrupt_is_found_and_answered_as_the_inbox_does() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let values = client
        .wait(&thread, json!({ "assistant_id": "ask", "input": {} }))
        .await;
    let interrupt = &values["__interrupt__"][0];
    assert_eq!(interrupt["value"]["action_request"]["action"], "refund");
    assert_eq!(
        interrupt["value"]["review_configs"][0]["allowed_decisions"],
        json!(["approve", "edit", "reject"])
    );

    let search = json!({ "status": "interrupted", "metadata": { "graph_id": "ask" } });
    let found = client.post("/threads/search", search).await;
    assert_eq!(found.header("x-pagination-total"), Some("1"));
    let found = found.ok();
    let listed = found[0]["interrupts"].as_object().unwrap();
    let listed = &listed.values().next().unwrap()[0];
    assert_eq!(listed["id"], interrupt["id"]);
    assert_eq!(listed["value"]["config"]["allow_ignore"], true);
    assert_eq!(listed["value"]["action_requests"], Json::Null);
    let state = client.get(&format!("{thread}/state")).await.ok();
    let shown = &state["tasks"][0]["interrupts"][0];
    assert_eq!(shown["id"], interrupt["id"]);
    assert_eq!(shown["value"], interrupt["value"]);
    assert_eq!(state["next"], json!(["ask"]));

    let edited =
        json!([{ "type": "edit", "args": { "action": "refund", "args": { "cents": "450" } } }]);
    let answer = json!({
        "assistant_id": "ask",
        "input": {},
        "checkpoint": state["checkpoint"],
        "command": { "resume": edited },
    });
    let values = client.wait(&thread, answer.clone()).await;
    assert_eq!(values["result"]["args"]["args"], json!({ "cents": 450 }));
    let late = json!({ "assistant_id": "ask", "command": answer["command"] });
    let late = client.post(&format!("{thread}/runs/wait"), late).await;
    assert_eq!(late.status, StatusCode::BAD_REQUEST);
    assert!(
        late.json["detail"]
            .as_str()
            .unwrap()
            .contains("no open interrupt")
    );
}

#[tokio::test]
async fn an_interrupt_is_resolved_without_an_answer() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let run = json!({ "assistant_id": "ask", "input": {} });
    client.wait(&thread, run).await;
    let closed = json!({ "values": null, "as_node": "__end__" });
    client.post(&format!("{thread}/state"), closed).await.ok();
    let found = client.get(&thread).await.ok();
    assert_eq!(found["status"], "idle");
    assert_eq!(found["interrupts"], json!({}));
}

#[tokio::test]
async fn callers_write_only_what_the_graph_declares() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let body = json!({ "assistant_id": "chat", "input": { "turns": 99 } });
    let refused = client.post(&format!("{thread}/runs/wait"), body).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.json["detail"].as_str().unwrap().contains("`turns`"));
    let mut body = say("hi");
    body["input"]["extra"] = json!(1);
    let reply = client.post(&format!("{thread}/runs/wait"), body).await;
    assert_eq!(reply.header("x-superstep-dropped-keys"), Some("extra"));
    let update = json!({ "values": { "turns": 99 }, "as_node": "reply" });
    let refused = client.post(&format!("{thread}/state"), update).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    // What a node gets besides the state is not theirs to write either.
    let sent = json!({ "goto": { "node": "reply", "input": { "turns": 99 } } });
    let update = json!({ "as_node": "reply", "command": sent });
    let refused = client
        .post(&format!("{thread}/state"), update.clone())
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let created = json!({
        "metadata": { "graph_id": "chat" },
        "supersteps": [{ "updates": [update] }],
    });
    let refused = client.post("/threads", created).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn requests_have_limits() {
    let client = Client::new().await;
    let many = vec![json!("0190a6b2-0000-7000-8000-00000000000a"); 1_001];
    let bodies = vec![json!({ "assistant_id": "chat", "input": {} }); 1_001];
    for (path, body) in [
        ("/runs/batch", json!(bodies)),
        ("/threads/search", json!({ "ids": many })),
        ("/threads/prune", json!({ "thread_ids": many })),
    ] {
        let refused = client.post(path, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
    }
    // Numbers that no clock and no counter can hold are cut.
    let thread = client.thread().await;
    let mut body = say("hi");
    body["config"] = json!({ "recursion_limit": u64::MAX });
    assert_eq!(client.wait(&thread, body).await["turns"], 1);
    let mut body = say("later");
    body["after_seconds"] = json!(1e300);
    client.post(&format!("{thread}/runs"), body).await.ok();
    let item = json!({ "namespace": ["a"], "key": "b", "value": {}, "ttl": 1e300 });
    let stored = client.call("PUT", "/store/items", Some(item)).await;
    assert_eq!(stored.status, StatusCode::NO_CONTENT);
    let found = client.get("/store/items?namespace=a&key=b").await.ok();
    assert_eq!(found["key"], "b");
}

/// Long enough for messages with documents, and not longer.
#[tokio::test]
async fn a_body_has_at_most_32_mib() {
    const MAX: usize = 32 * 1024 * 1024;
    let client = Client::new().await;
    let send = async |path: &str, bytes: usize| {
        let mut body = vec![b' '; bytes - 2];
        body.extend_from_slice(b"{}");
        let request = Request::post(path).body(Body::from(body)).unwrap();
        client.send(request).await.status
    };
    assert_eq!(send("/threads/search", MAX).await, StatusCode::OK);
    for path in [
        "/threads/search",
        "/threads",
        "/runs/wait",
        "/runs/crons",
        "/store/items/search",
        "/mcp",
        "/a2a/chat",
        "/ag-ui/chat",
    ] {
        let status = send(path, MAX + 1).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    assert_eq!(client.post("/threads/count", json!({})).await.ok(), 0);
}

#[tokio::test]
async fn a_state_is_changed_from_outside() {
    let client = Client::new().await;
    let thread = client.thread().await;
    client.wait(&thread, say("hi")).await;
    let update = json!({ "values": { "topic": "tea", "notes": ["a"] } });
    let changed = client.post(&format!("{thread}/state"), update).await.ok();
    let state = client.get(&format!("{thread}/state")).await.ok();
    assert_eq!(state["checkpoint"], changed["checkpoint"]);
    assert_eq!(state["values"]["topic"], "tea");
    assert_eq!(state["metadata"]["source"], "update");
    let id = state["parent_checkpoint_id"].as_str().unwrap();
    let before = client.get(&format!("{thread}/state/{id}")).await.ok();
    assert_eq!(before["values"]["topic"], Json::Null);
}

#[tokio::test]
async fn threads_are_created_searched_changed_copied_and_deleted() {
    let client = Client::new().await;
    let id = "0190a6b2-0000-7000-8000-00000000000a";
    let new = json!({ "thread_id": id, "metadata": { "owner": "ada" }, "ttl": { "ttl": 5 } });
    client.post("/threads", new.clone()).await.ok();
    let again = client.post("/threads", new.clone()).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(
        again.json["detail"],
        format!("Thread with ID {id} already exists")
    );
    let mut tolerant = new;
    tolerant["if_exists"] = json!("do_nothing");
    client.post("/threads", tolerant).await.ok();
    let thread = format!("/threads/{id}");
    let ttl = client.get(&format!("{thread}?include=ttl")).await.ok();
    assert_eq!(ttl["ttl"]["ttl_minutes"], 5.0);
    client.wait(&thread, say("hi")).await;

    let search = json!({
        "metadata": { "owner": "ada" },
        "select": ["thread_id"],
        "extract": { "last": "values.messages[-1].content" },
    });
    let found = client.post("/threads/search", search).await.ok();
    assert_eq!(
        found,
        json!([{ "thread_id": id, "extracted": { "last": "You said: hi" } }])
    );
    let changed = client
        .call(
            "PATCH",
            &thread,
            Some(json!({ "metadata": { "done": true } })),
        )
        .await
        .ok();
    assert_eq!(changed["metadata"]["owner"], "ada");
    assert_eq!(changed["metadata"]["done"], true);
    let copy = client.post(&format!("{thread}/copy"), json!({})).await.ok();
    assert_eq!(copy["metadata"]["owner"], "ada");
    assert_eq!(copy["config"], json!({}));
    let copied = format!("/threads/{}", copy["thread_id"].as_str().unwrap());
    assert_ne!(copied, thread);
    assert_eq!(client.get(&copied).await.ok()["values"]["turns"], 1);
    let original = client.get(&format!("{thread}/state")).await.ok();
    let state = client.get(&format!("{copied}/state")).await.ok();
    assert_eq!(state["checkpoint_id"], original["checkpoint_id"]);
    assert_eq!(
        state["parent_checkpoint_id"],
        original["parent_checkpoint_id"]
    );
    assert_eq!(state["checkpoint"]["thread_id"], copy["thread_id"]);
    let parent = state["parent_checkpoint_id"].as_str().unwrap();
    let parent = client.get(&format!("{copied}/state/{parent}")).await.ok();
    assert_eq!(parent["checkpoint_id"], original["parent_checkpoint_id"]);
    let count = json!({ "metadata": { "owner": "ada" } });
    assert_eq!(client.post("/threads/count", count).await.ok(), 2);
    let deleted = client.call("DELETE", &thread, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let missing = client.get(&thread).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(
        missing.json["detail"],
        format!("Thread with ID {id} not found")
    );
}

#[tokio::test]
async fn runs_are_listed_rejected_and_cancelled() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let run = json!({ "assistant_id": "slow", "input": {}, "metadata": { "try": 1 } });
    let created = client
        .post(&format!("{thread}/runs"), run.clone())
        .await
        .ok();
    assert_eq!(created["status"], "pending");
    assert_eq!(created["metadata"]["try"], 1);
    let mut second = run;
    second["multitask_strategy"] = json!("reject");
    let refused = client.post(&format!("{thread}/runs"), second).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let busy = json!({ "status": "busy" });
    let busy = client.post("/threads/search", busy).await.ok();
    assert_eq!(busy[0]["status"], "busy");
    let path = format!("{thread}/runs/{}", created["run_id"].as_str().unwrap());
    client.until(&path, "running").await;
    let cancelled = client
        .post(&format!("{path}/cancel?wait=1"), json!({}))
        .await;
    assert_eq!(cancelled.header("content-location"), Some(path.as_str()));
    assert_eq!(cancelled.ok(), json!({}));
    let again = client.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(&path).await.ok()["status"], "interrupted");
    let found = client.get(&thread).await.ok();
    assert_eq!(found["status"], "interrupted");
    assert_eq!(found["error"]["error"], "UserInterrupt");
    let listed = client
        .get(&format!("{thread}/runs?select=status"))
        .await
        .ok();
    assert_eq!(listed, json!([{ "status": "interrupted" }]));
}

#[tokio::test]
async fn a_run_that_is_rolled_back_leaves_nothing() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "topic": "tea" } });
    let created = client.post(&format!("{thread}/runs"), run).await.ok();
    let path = format!("{thread}/runs/{}", created["run_id"].as_str().unwrap());
    client.until(&path, "running").await;
    let cancel = format!("{path}/cancel?wait=true&action=rollback");
    client.post(&cancel, json!({})).await.ok();
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    let found = client.get(&thread).await.ok();
    assert_eq!(found["status"], "idle");
    assert_eq!(found["values"], Json::Null);
    assert_eq!(found["error"]["error"], "UserRollback");
    assert_eq!(found["metadata"]["graph_id"], "slow");
}

#[tokio::test]
async fn a_failed_run_says_why() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let values = client
        .wait(&thread, json!({ "assistant_id": "broken", "input": {} }))
        .await;
    assert_eq!(values["__error__"]["message"], "kaboom");
    let found = client.get(&thread).await.ok();
    assert_eq!(found["status"], "error");
    assert_eq!(found["error"]["message"], "kaboom");
    let state = client.get(&format!("{thread}/state")).await.ok();
    assert!(
        state["tasks"][0]["error"]
            .as_str()
            .unwrap()
            .contains("kaboom")
    );
}

#[tokio::test]
async fn a_run_has_the_metadata_of_its_assistant_and_its_thread() {
    let client = Client::new().await;
    let new = json!({ "graph_id": "chat", "metadata": { "team": "a", "tier": 1 } });
    let assistant = client.post("/assistants", new).await.ok();
    let new = json!({ "metadata": { "team": "b", "topic": "tea" } });
    let created = client.post("/threads", new).await.ok();
    let thread = format!("/threads/{}", created["thread_id"].as_str().unwrap());
    let mut run = say("hi");
    run["assistant_id"] = assistant["assistant_id"].clone();
    run["metadata"] = json!({ "topic": "milk" });
    run["config"] = json!({
        "tags": ["x"], "recursion_limit": 9, "configurable": { "tone": "dry", "api_key": "s" },
    });
    client.wait(&thread, run).await;
    let state = client.get(&format!("{thread}/state")).await.ok();
    let metadata = ["team", "tier", "topic"].map(|name| state["metadata"][name].clone());
    assert_eq!(metadata, [json!("b"), json!(1), json!("milk")]);
    let config = json!({ "configurable": {}, "tags": ["x"], "recursion_limit": 9 });
    assert_eq!(client.get(&thread).await.ok()["config"], config);
    let search = json!({ "select": ["config"] });
    let found = client.post("/threads/search", search).await.ok();
    assert_eq!(found, json!([{ "config": config }]));
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_is_a_success() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let run = json!({ "assistant_id": "ask", "input": {} });
    let created = client.post(&format!("{thread}/runs"), run).await.ok();
    let path = format!("{thread}/runs/{}", created["run_id"].as_str().unwrap());
    let joined = client.get(&format!("{path}/join")).await;
    assert_eq!(joined.header("content-location"), Some(path.as_str()));
    assert!(joined.ok()["__interrupt__"][0]["value"].is_object());
    assert_eq!(client.get(&path).await.ok()["status"], "success");
    assert_eq!(client.get(&thread).await.ok()["status"], "interrupted");
}

#[tokio::test]
async fn a_stateless_run_leaves_no_row() {
    let client = Client::new().await;
    let reply = client.post("/runs/wait", say("hi")).await;
    assert!(
        reply
            .header("content-location")
            .unwrap()
            .starts_with("/runs/")
    );
    assert_eq!(reply.ok()["turns"], 1);
    assert_eq!(client.post("/threads/count", json!({})).await.ok(), 0);
    let metrics = client.get("/metrics?format=json").await.ok();
    assert_eq!(metrics["runs_submitted"], 1);
    assert_eq!(metrics["runs_pending"], 0);
    let mut kept = say("hi");
    kept["on_completion"] = json!("keep");
    client.post("/runs/wait", kept).await.ok();
    assert_eq!(client.post("/threads/count", json!({})).await.ok(), 1);
}

#[tokio::test]
async fn assistants_have_versions_and_a_default() {
    let client = Client::new().await;
    let all = json!({ "graph_id": "chat" });
    let found = client.post("/assistants/search", all).await.ok();
    assert_eq!(found[0]["name"], "chat");
    assert_eq!(found[0]["metadata"], json!({ "created_by": "system" }));
    let new = json!({ "graph_id": "chat", "name": "mine", "context": { "tone": "dry" } });
    let created = client.post("/assistants", new).await.ok();
    assert_eq!(created["config"]["configurable"]["tone"], "dry");
    let path = format!("/assistants/{}", created["assistant_id"].as_str().unwrap());
    let changed = client
        .call("PATCH", &path, Some(json!({ "name": "yours" })))
        .await;
    assert_eq!(changed.ok()["version"], 2);
    let back = client
        .post(&format!("{path}/latest"), json!({ "version": 1 }))
        .await;
    assert_eq!(back.ok()["name"], "mine");
    let versions = client
        .post(&format!("{path}/versions"), json!({}))
        .await
        .ok();
    assert_eq!(versions.as_array().unwrap().len(), 2);
    assert!(versions[0].get("updated_at").is_none());
    let nowhere = json!({ "graph_id": "nowhere" });
    let unknown = client.post("/assistants", nowhere).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let graph = client.get("/assistants/chat/graph").await.ok();
    assert_eq!(graph["nodes"][1]["id"], "reply");
    assert_eq!(
        client.get("/assistants/chat/schemas").await.ok()["graph_id"],
        "chat"
    );
    let unknown = client
        .post("/runs", json!({ "assistant_id": "nothing" }))
        .await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY);
    let detail = unknown.json["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("Invalid assistant: 'nothing'"),
        "{detail}"
    );
    assert_eq!(
        client.call("DELETE", &path, None).await.status,
        StatusCode::NO_CONTENT
    );
}

#[tokio::test]
async fn items_are_stored_and_found() {
    let client = Client::new().await;
    let put = json!({ "namespace": ["users", "ada"], "key": "tea", "value": { "kind": "green" } });
    let stored = client.call("PUT", "/store/items", Some(put)).await;
    assert_eq!(stored.status, StatusCode::NO_CONTENT);
    let item = client
        .get("/store/items?namespace=users.ada&key=tea")
        .await
        .ok();
    assert_eq!(item["value"]["kind"], "green");
    let missing = client
        .get("/store/items?namespace=users.ada&key=no")
        .await
        .ok();
    assert_eq!(missing, Json::Null);
    let search = json!({ "namespace_prefix": ["users"], "filter": { "kind": "green" } });
    let found = client.post("/store/items/search", search).await.ok();
    assert_eq!(found["items"][0]["key"], "tea");
    let names = client.post("/store/namespaces", json!({})).await.ok();
    assert_eq!(names, json!({ "namespaces": [["users", "ada"]] }));
    let system = json!({ "namespace": ["superstep", "budget"], "key": "a", "value": {} });
    let refused = client.call("PUT", "/store/items", Some(system)).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let delete = json!({ "namespace": ["users", "ada"], "key": "tea" });
    client
        .call("DELETE", "/store/items", Some(delete))
        .await
        .ok();
    let names = client.post("/store/namespaces", json!({})).await.ok();
    assert_eq!(names, json!({ "namespaces": [] }));
}

#[tokio::test]
async fn errors_and_other_origins() {
    let client = Client::new().await;
    assert_eq!(
        client.get("/ok?check_db=1").await.ok(),
        json!({ "ok": true })
    );
    let nowhere = client.get("/nowhere").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert_eq!(nowhere.json, json!({ "detail": "Not Found" }));
    assert_eq!(nowhere.header("access-control-allow-origin"), None);
    let bad = client.get("/threads/7").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(bad.json["detail"], "Invalid thread ID: must be a UUID");
    let wrong = client
        .call("PATCH", "/threads/search", Some(json!({})))
        .await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    let preflight = Request::builder()
        .method("OPTIONS")
        .uri("/threads")
        .header("origin", "http://localhost:3000")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-api-key")
        .body(Body::empty())
        .unwrap();
    let allowed = client.send(preflight).await;
    assert_eq!(allowed.status, StatusCode::OK);
    assert_eq!(
        allowed.header("access-control-allow-headers"),
        Some("x-api-key")
    );
    let origin = allowed.header("access-control-allow-origin");
    assert_eq!(origin, Some("http://localhost:3000"));
    let exposed = allowed.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("content-location") && exposed.contains(", location"));
}
