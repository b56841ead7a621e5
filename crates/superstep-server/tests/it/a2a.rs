//! A2A: cards of agents, and their tasks.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::kit::Client;
use crate::streams::StreamClient;

/// Sends a request and returns the reply.
async fn request(client: &Client, agent: &str, method: &str, params: Json) -> Json {
    let body = json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params });
    let reply = client.post(&format!("/a2a/{agent}"), body).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.json["id"], "q");
    reply.json
}

/// Sends a request that must succeed and returns the result.
async fn call(client: &Client, agent: &str, method: &str, params: Json) -> Json {
    let reply = request(client, agent, method, params).await;
    assert!(reply.get("error").is_none(), "{reply}");
    reply["result"].clone()
}

async fn code(client: &Client, agent: &str, method: &str, params: Json) -> i64 {
    let reply = request(client, agent, method, params).await;
    reply["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{reply}"))
}

/// Returns the parameters of a message with a text, in the form of version 0.3.
fn says(text: &str) -> Json {
    json!({
        "message": {
            "kind": "message",
            "messageId": "m1",
            "role": "user",
            "parts": [{ "kind": "text", "text": text }],
        },
    })
}

fn with(mut params: Json, name: &str, value: &Json) -> Json {
    params["message"][name] = value.clone();
    params
}

#[tokio::test]
async fn a_card_says_where_an_assistant_is() {
    let client = Client::new().await;
    let card = client
        .get("/.well-known/agent-card.json?assistant_id=chat")
        .await
        .ok();
    assert_eq!(card["name"], "chat");
    assert_eq!(card["protocolVersion"], "0.3.0");
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
    assert_eq!(card["supportedInterfaces"][0]["url"], card["url"]);
    let path = card["url"]
        .as_str()
        .unwrap()
        .replace("http://localhost", "");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": says("hi") });
    let reply = client.post(&path, body).await.ok();
    assert_eq!(reply["result"]["status"]["state"], "completed");
    let first = client.get("/.well-known/agent-card.json").await.ok();
    assert_eq!(first["name"], "ask", "the first graph by name");
    let unknown = client
        .get("/.well-known/agent-card.json?assistant_id=nobody")
        .await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_task_has_the_answer_of_the_agent_in_both_versions() {
    let client = Client::new().await;
    let task = call(&client, "chat", "message/send", says("hi")).await;
    assert_eq!(task["kind"], "task");
    assert_eq!(task["status"]["state"], "completed");
    let said = json!([{ "kind": "text", "text": "You said: hi" }]);
    assert_eq!(task["artifacts"][0]["parts"], said);
    let params = json!({
        "message": {
            "messageId": "m2",
            "contextId": task["contextId"],
            "role": "ROLE_USER",
            "parts": [{ "text": "again" }],
        },
        "configuration": { "historyLength": 2 },
    });
    let next = call(&client, "chat", "SendMessage", params).await["task"].clone();
    assert!(next.get("kind").is_none());
    assert_eq!(next["contextId"], task["contextId"]);
    assert_ne!(next["id"], task["id"]);
    assert_eq!(next["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        next["artifacts"][0]["parts"],
        json!([{ "text": "You said: again" }])
    );
    assert_eq!(next["history"].as_array().unwrap().len(), 2);
    assert_eq!(next["history"][0]["parts"][0]["text"], "again");
    let found = call(&client, "chat", "GetTask", json!({ "id": next["id"] })).await;
    assert_eq!(found["status"]["state"], "TASK_STATE_COMPLETED");
    let old = call(&client, "chat", "tasks/get", json!({ "id": task["id"] })).await;
    assert_eq!(old["artifacts"][0]["parts"], said, "of its own run");
}

#[tokio::test]
async fn a_context_may_have_any_name() {
    let client = Client::new().await;
    let context = json!("my context");
    let task = call(
        &client,
        "chat",
        "message/send",
        with(says("hi"), "contextId", &context),
    )
    .await;
    assert_eq!(task["contextId"], context);
    let found = call(&client, "chat", "tasks/get", json!({ "id": task["id"] })).await;
    assert_eq!(found["contextId"], context);
    let listed = call(
        &client,
        "chat",
        "tasks/list",
        json!({ "contextId": context }),
    )
    .await;
    assert_eq!(listed["tasks"][0]["id"], task["id"]);
}

#[tokio::test]
async fn a_task_that_waits_is_continued_by_the_next_message() {
    let client = Client::new().await;
    let task = call(&client, "ask", "message/send", says("refund me")).await;
    assert_eq!(task["status"]["state"], "input-required");
    let parts = &task["status"]["message"]["parts"];
    assert_eq!(parts[0]["text"], "May `refund` be called?");
    let interrupt = &parts[1]["data"]["interrupts"][0];
    assert_eq!(interrupt["value"]["action_request"]["action"], "refund");
    let accept = json!({
        "message": {
            "messageId": "m2",
            "taskId": task["id"],
            "role": "user",
            "parts": [{ "kind": "data", "data": { "type": "accept" } }],
        },
    });
    let done = call(&client, "ask", "message/send", accept.clone()).await;
    assert_eq!(done["id"], task["id"]);
    assert_eq!(done["contextId"], task["contextId"]);
    assert_eq!(done["status"]["state"], "completed");
    let found = call(&client, "ask", "tasks/get", json!({ "id": task["id"] })).await;
    assert_eq!(found["status"]["state"], "completed");
    // It is one task, and it is over.
    let listed = call(&client, "ask", "tasks/list", json!({})).await;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(code(&client, "ask", "message/send", accept).await, -32004);
}

#[tokio::test]
async fn a_context_that_waits_takes_an_answer_without_the_name_of_the_task() {
    let client = Client::new().await;
    let task = call(&client, "ask", "message/send", says("refund me")).await;
    let answer = with(says("too much"), "contextId", &task["contextId"]);
    let done = call(&client, "ask", "message/send", answer).await;
    assert_eq!(done["id"], task["id"]);
    assert_eq!(done["status"]["state"], "completed");
}

#[tokio::test]
async fn a_task_is_cancelled_while_it_works() {
    let client = Client::new().await;
    let mut params = says("wait");
    params["configuration"] = json!({ "blocking": false });
    let task = call(&client, "slow", "message/send", params).await;
    assert!(["submitted", "working"].contains(&task["status"]["state"].as_str().unwrap()));
    let named = json!({ "id": task["id"] });
    let cancelled = call(&client, "slow", "tasks/cancel", named.clone()).await;
    assert_eq!(cancelled["status"]["state"], "canceled");
    assert_eq!(
        code(&client, "slow", "tasks/cancel", named.clone()).await,
        -32002
    );
    assert_eq!(
        code(&client, "slow", "tasks/resubscribe", named).await,
        -32004
    );
    let failed = call(&client, "broken", "message/send", says("hi")).await;
    assert_eq!(failed["status"]["state"], "failed");
    let text = failed["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("kaboom"), "{text}");
}

#[tokio::test]
async fn a_task_is_cancelled_while_it_waits_for_input() {
    let client = Client::new().await;
    let task = call(&client, "ask", "message/send", says("refund me")).await;
    assert_eq!(task["status"]["state"], "input-required");
    let named = json!({ "id": task["id"] });
    let cancelled = call(&client, "ask", "tasks/cancel", named.clone()).await;
    assert_eq!(cancelled["id"], task["id"]);
    assert_eq!(cancelled["status"]["state"], "canceled");
    let found = call(&client, "ask", "tasks/get", named.clone()).await;
    assert_eq!(found["status"]["state"], "canceled");
    assert_eq!(code(&client, "ask", "tasks/cancel", named).await, -32002);
    let late = with(says("yes"), "taskId", &task["id"]);
    assert_eq!(code(&client, "ask", "message/send", late).await, -32004);
}

#[tokio::test]
async fn a_task_that_was_answered_cannot_be_cancelled() {
    let client = Client::new().await;
    let task = call(&client, "ask", "message/send", says("refund me")).await;
    let answer = with(says("too much"), "taskId", &task["id"]);
    let done = call(&client, "ask", "message/send", answer).await;
    assert_eq!(done["status"]["state"], "completed");
    let named = json!({ "id": task["id"] });
    assert_eq!(code(&client, "ask", "tasks/cancel", named).await, -32002);
}

#[tokio::test]
async fn tasks_are_listed_a_page_at_a_time() {
    let client = Client::new().await;
    for text in ["one", "two", "three"] {
        call(&client, "chat", "message/send", says(text)).await;
    }
    let first = call(&client, "chat", "ListTasks", json!({ "pageSize": 2 })).await;
    assert_eq!(first["tasks"].as_array().unwrap().len(), 2);
    assert!(first["tasks"][0].get("artifacts").is_none());
    let token = &first["nextPageToken"];
    let params = json!({ "pageSize": 2, "pageToken": token, "includeArtifacts": true });
    let second = call(&client, "chat", "ListTasks", params).await;
    assert_eq!(
        second["tasks"][0]["artifacts"][0]["parts"][0]["text"],
        "You said: one"
    );
    assert_eq!(second["nextPageToken"], "");
    let working = json!({ "status": "TASK_STATE_WORKING" });
    assert_eq!(
        call(&client, "chat", "ListTasks", working).await["tasks"],
        json!([])
    );
    assert_eq!(
        call(&client, "ask", "ListTasks", json!({})).await["tasks"],
        json!([])
    );
    for params in [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 1_000 }),
        json!({ "pageToken": "x" }),
        json!({ "status": "asleep" }),
        json!({ "historyLength": -1 }),
        json!({ "statusTimestampAfter": "-1" }),
    ] {
        assert_eq!(code(&client, "chat", "ListTasks", params).await, -32602);
    }
    for (after, count) in [("2020-01-01T00:00:00Z", 3), ("2900-01-01T00:00:00Z", 0)] {
        let params = json!({ "statusTimestampAfter": after });
        let listed = call(&client, "chat", "ListTasks", params).await;
        assert_eq!(listed["tasks"].as_array().unwrap().len(), count, "{after}");
    }
}

#[tokio::test]
async fn a_task_is_streamed() {
    let client = StreamClient::new().await;
    let send = |agent: &'static str, method: &str| {
        let parts = json!([{ "kind": "data", "data": { "topic": "tea" } }]);
        let message = json!({ "messageId": "m", "role": "user", "parts": parts });
        let params = json!({ "message": message });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        (format!("/a2a/{agent}"), body)
    };
    let (path, body) = send("writing", "message/stream");
    let replies = client.post(&path, body).await.all_data().await;
    assert!(
        replies
            .iter()
            .all(|reply| reply["id"] == 7 && reply["jsonrpc"] == "2.0")
    );
    let events: Vec<&Json> = replies.iter().map(|reply| &reply["result"]).collect();
    assert_eq!(events[0]["kind"], "task");
    assert_eq!(events[1]["status"]["state"], "working");
    assert_eq!(events[1]["final"], false);
    let chunks: Vec<&&Json> = events
        .iter()
        .filter(|event| event["kind"] == "artifact-update")
        .collect();
    let pieces: Vec<(&Json, &Json)> = chunks
        .iter()
        .map(|chunk| (&chunk["artifact"]["parts"][0]["text"], &chunk["append"]))
        .collect();
    assert_eq!(pieces[0], (&json!("Hello,"), &json!(false)));
    assert_eq!(pieces[1], (&json!(" world!"), &json!(true)));
    let result = &chunks.last().unwrap()["artifact"]["parts"][0]["data"];
    assert_eq!(result["lines"], json!(["written"]));
    let last = events.last().unwrap();
    assert_eq!(
        (&last["status"]["state"], &last["final"]),
        (&json!("completed"), &json!(true))
    );
    // The same in the other version, with a pause.
    let (path, body) = send("asking", "SendStreamingMessage");
    let replies = client.post(&path, body).await.all_data().await;
    assert!(replies[0]["result"]["task"]["id"].is_string());
    let last = &replies.last().unwrap()["result"]["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(last["status"]["message"]["parts"][0]["text"], "Really?");
    assert!(last.get("final").is_none());
}

#[tokio::test]
async fn a_stream_that_was_lost_is_opened_again() {
    let client = StreamClient::new().await;
    let parts = json!([{ "data": { "topic": "tea" } }]);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
    let send = json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": { "message": message },
    });
    let mut stream = client.post("/a2a/slow", send).await;
    let first = stream.next_data().await.unwrap();
    drop(stream);
    let named = json!({ "id": first["result"]["task"]["id"] });
    let again =
        |method: &str| json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": named });
    let mut stream = client.post("/a2a/slow", again("SubscribeToTask")).await;
    let task = stream.next_data().await.unwrap();
    assert_eq!(task["result"]["task"]["id"], named["id"]);
    client
        .json("POST", "/a2a/slow", Some(again("CancelTask")))
        .await;
    let last = stream.all_data().await.pop().unwrap();
    let state = &last["result"]["statusUpdate"]["status"]["state"];
    assert_eq!(state, "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn what_is_not_a_request_is_refused_with_the_codes_of_the_protocol() {
    let client = Client::new().await;
    let task = call(&client, "chat", "message/send", says("hi")).await;
    let name = task["id"].as_str().unwrap();
    let other = name.replace(':', ":0");
    for (agent, method, params, expected) in [
        ("chat", "tasks/delete", json!({}), -32601),
        ("chat", "message/send", json!({}), -32602),
        (
            "chat",
            "message/send",
            json!({ "message": { "parts": [] } }),
            -32602,
        ),
        ("chat", "tasks/get", json!({}), -32602),
        ("chat", "tasks/get", json!({ "id": "nothing" }), -32001),
        ("chat", "tasks/get", json!({ "id": other }), -32001),
        ("ask", "tasks/get", json!({ "id": name }), -32001),
        (
            "chat",
            "message/send",
            with(says("hi"), "taskId", &json!("x")),
            -32001,
        ),
        (
            "chat",
            "message/send",
            with(says("hi"), "taskId", &json!(name)),
            -32004,
        ),
        (
            "chat",
            "tasks/pushNotificationConfig/set",
            json!({}),
            -32003,
        ),
        ("chat", "GetExtendedAgentCard", json!({}), -32007),
        ("nobody", "message/send", says("hi"), -32602),
    ] {
        let found = code(&client, agent, method, params.clone()).await;
        assert_eq!(found, expected, "{agent} {method} {params}");
    }
    let streams = StreamClient::new().await;
    let text = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": says("hi") });
    let refused = streams.json("POST", "/a2a/two", Some(text)).await;
    assert_eq!(
        refused["error"]["code"], -32005,
        "the graph has no messages: {refused}"
    );
    for (text, expected) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","method":"message/send"}"#, -32600),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"message/send"}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"message/send"}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":[]}"#,
            -32600,
        ),
    ] {
        let refused = streams.post_text("/a2a/two", text).await;
        assert_eq!(refused.whole().await["error"]["code"], expected, "{text}");
    }
    let get = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "x" } });
    let headers = [("a2a-version", "7.0")];
    let refused = streams
        .open("POST", "/a2a/two", &headers, Some(get))
        .await
        .whole()
        .await;
    assert_eq!(refused["error"]["code"], -32009);
}
