//! The Model Context Protocol: assistants as tools.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::streams::{Opened, StreamClient};

const BOTH: &str = "application/json, text/event-stream";

/// A client of the protocol, connected to a server of its own.
struct Mcp {
    client: StreamClient,
    session: String,
}

impl Mcp {
    async fn connect(capabilities: Json) -> Self {
        let client = StreamClient::new().await;
        let session = connect(&client, capabilities).await;
        Self { client, session }
    }

    async fn send(&self, message: Json) -> Opened {
        self.send_in(&self.session, message).await
    }

    async fn send_in(&self, session: &str, message: Json) -> Opened {
        let headers = [
            ("accept", BOTH),
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        self.client
            .open("POST", "/mcp", &headers, Some(message))
            .await
    }

    async fn request(&self, method: &str, params: Json) -> Json {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let opened = self.send(message).await;
        assert_eq!(opened.status, StatusCode::OK);
        opened.whole().await
    }

    /// Calls a tool and returns the result.
    async fn call(&self, tool: &str, arguments: Json) -> Json {
        let params = json!({ "name": tool, "arguments": arguments });
        let reply = self.request("tools/call", params).await;
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    /// Calls a tool and returns the stream of the call.
    async fn open_call(&self, tool: &str) -> Opened {
        let params = json!({
            "name": tool, "arguments": { "topic": "tea" }, "_meta": { "progressToken": "p" },
        });
        let message =
            json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params });
        let opened = self.send(message).await;
        assert_eq!(opened.status, StatusCode::OK);
        assert!(
            opened
                .header("content-type")
                .starts_with("text/event-stream")
        );
        opened
    }

    async fn threads(&self) -> usize {
        let found = self.client.json("POST", "/threads/search", Some(json!({})));
        found.await.as_array().unwrap().len()
    }
}

/// Connects, and returns the id of the session.
async fn connect(client: &StreamClient, capabilities: Json) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let opened = client
        .open("POST", "/mcp", &[("accept", BOTH)], Some(message))
        .await;
    assert_eq!(opened.status, StatusCode::OK);
    let session = opened.header("mcp-session-id").to_owned();
    let reply = opened.whole().await;
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(reply["result"]["serverInfo"]["name"], "superstep");
    session
}

fn text_of(result: &Json) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// Reads a stream up to the first message with this method.
async fn until(stream: &mut Opened, method: &str) -> Json {
    loop {
        let message = stream.next_data().await.expect("the stream goes on");
        if message["method"] == method {
            return message;
        }
    }
}

#[tokio::test]
async fn a_version_that_is_not_known_is_answered_with_the_newest() {
    let mcp = Mcp::connect(json!({})).await;
    for (wanted, spoken) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let reply = mcp
            .request("initialize", json!({ "protocolVersion": wanted }))
            .await;
        assert_eq!(reply["result"]["protocolVersion"], spoken);
    }
    let reply = mcp.request("initialize", json!({})).await;
    assert_eq!(reply["error"]["code"], -32602);
    assert_eq!(mcp.request("ping", json!({})).await["result"], json!({}));
    let noted = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(mcp.send(noted).await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn every_assistant_is_a_tool() {
    let mcp = Mcp::connect(json!({})).await;
    let body = json!({ "graph_id": "two", "name": "Two, again", "description": "Twice." });
    let own = mcp.client.json("POST", "/assistants", Some(body)).await;
    let listed = mcp.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 10, "{tools:?}");
    let two = tools.iter().find(|tool| tool["name"] == "two").unwrap();
    assert_eq!(two["inputSchema"]["type"], "object");
    let inputs = two["inputSchema"]["properties"].as_object().unwrap();
    assert_eq!(inputs.keys().collect::<Vec<_>>(), ["lines", "topic"]);
    assert_eq!(two["annotations"]["readOnlyHint"], false);
    let id = own["assistant_id"].as_str().unwrap().replace('-', "");
    let name = format!("Two--again_{id}");
    let tool = tools.iter().find(|tool| tool["name"] == *name).unwrap();
    assert_eq!(tool["title"], "Two, again");
    assert_eq!(tool["description"], "Twice.");
    let result = mcp.call(&name, json!({ "topic": "tea" })).await;
    assert!(text_of(&result).contains("first about tea"), "{result}");
    let refused = mcp.request("tools/list", json!({ "cursor": "x" })).await;
    assert_eq!(refused["error"]["code"], -32602);
    let beyond = mcp.request("tools/list", json!({ "cursor": "100" })).await;
    assert_eq!(beyond["result"], json!({ "tools": [] }));
}

#[tokio::test]
async fn a_call_returns_the_final_state_and_leaves_no_thread() {
    let mcp = Mcp::connect(json!({})).await;
    let result = mcp.call("two", json!({ "topic": "tea" })).await;
    assert_eq!(result["isError"], false);
    let values: Json = serde_json::from_str(text_of(&result)).unwrap();
    assert_eq!(values["lines"], json!(["first about tea", "second"]));
    let failed = mcp.call("broken", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert!(text_of(&failed).contains("kaboom"), "{failed}");
    assert_eq!(mcp.threads().await, 0);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_the_models_to_correct() {
    let mcp = Mcp::connect(json!({})).await;
    let result = mcp.call("two", json!({ "topic": 7 })).await;
    assert_eq!(result["isError"], true);
    assert!(text_of(&result).contains("expected a string"), "{result}");
    for params in [
        json!({ "name": "nowhere" }),
        json!({ "name": 7 }),
        json!({}),
        json!({ "name": "two", "arguments": [] }),
        json!({ "name": format!("x_{}", "0".repeat(32)) }),
    ] {
        let reply = mcp.request("tools/call", params.clone()).await;
        assert_eq!(reply["error"]["code"], -32602, "{params}");
    }
    assert_eq!(mcp.threads().await, 0);
}

#[tokio::test]
async fn progress_is_reported_until_the_reply() {
    let mcp = Mcp::connect(json!({})).await;
    let messages = mcp.open_call("two").await.all_data().await;
    let (reply, progress) = messages.split_last().unwrap();
    assert_eq!(reply["id"], "call");
    assert!(text_of(&reply["result"]).contains("second"));
    let shown: Vec<Json> = progress
        .iter()
        .map(|message| message["params"].clone())
        .collect();
    assert_eq!(
        shown,
        [
            json!({ "progressToken": "p", "progress": 1, "message": "node first" }),
            json!({ "progressToken": "p", "progress": 2, "message": "node second" }),
        ]
    );
}

#[tokio::test]
async fn an_interrupt_is_shown_to_the_user_of_a_client_that_can() {
    let mcp = Mcp::connect(json!({ "elicitation": {} })).await;
    let mut stream = mcp.open_call("asking").await;
    let asked = until(&mut stream, "elicitation/create").await;
    assert_eq!(asked["params"]["message"], "Really?");
    assert_eq!(
        asked["params"]["requestedSchema"]["properties"]["answer"]["type"],
        "string"
    );
    let answer = json!({
        "jsonrpc": "2.0",
        "id": asked["id"],
        "result": { "action": "accept", "content": { "answer": "yes" } },
    });
    // Another client cannot answer, whatever it knows.
    let other = connect(&mcp.client, json!({ "elicitation": {} })).await;
    let refused = mcp.send_in(&other, answer.clone()).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(mcp.send(answer.clone()).await.status, StatusCode::ACCEPTED);
    let mut rest = stream.all_data().await;
    let reply = rest.pop().unwrap();
    assert_eq!(reply["id"], "call");
    assert!(
        text_of(&reply["result"]).contains("answered yes"),
        "{reply}"
    );
    assert_eq!(mcp.send(answer).await.status, StatusCode::NOT_FOUND, "once");
    assert_eq!(mcp.threads().await, 0);
}

#[tokio::test]
async fn a_user_who_does_not_decide_leaves_the_run_waiting() {
    let mcp = Mcp::connect(json!({ "elicitation": {} })).await;
    let mut stream = mcp.open_call("asking").await;
    let asked = until(&mut stream, "elicitation/create").await;
    let cancel = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "cancel" } });
    assert_eq!(mcp.send(cancel).await.status, StatusCode::ACCEPTED);
    let reply = stream.all_data().await.pop().unwrap();
    assert_eq!(reply["result"]["structuredContent"]["status"], "waiting");
    assert_eq!(mcp.threads().await, 1);
}

#[tokio::test]
async fn without_elicitation_the_result_names_the_thread_that_waits() {
    let mcp = Mcp::connect(json!({})).await;
    let result = mcp.call("asking", json!({ "topic": "tea" })).await;
    assert_eq!(result["isError"], false);
    assert!(text_of(&result).contains("Really?"), "{result}");
    let waiting = &result["structuredContent"];
    assert_eq!(waiting["interrupts"][0]["value"], "Really?");
    let thread = waiting["thread_id"].as_str().unwrap();
    let body = json!({ "assistant_id": "asking", "command": { "resume": "surely" } });
    let path = format!("/threads/{thread}/runs/wait");
    let values = mcp.client.json("POST", &path, Some(body)).await;
    assert_eq!(values["lines"][1], "answered surely");
}

#[tokio::test]
async fn a_cancelled_call_has_no_reply_and_no_thread() {
    let mcp = Mcp::connect(json!({})).await;
    let mut stream = mcp.open_call("slow").await;
    until(&mut stream, "notifications/progress").await;
    let cancel = |id: &str| {
        json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        })
    };
    // Neither another call nor another client's.
    assert_eq!(mcp.send(cancel("other")).await.status, StatusCode::ACCEPTED);
    let other = connect(&mcp.client, json!({})).await;
    mcp.send_in(&other, cancel("call")).await;
    assert_eq!(mcp.threads().await, 1);
    mcp.send(cancel("call")).await;
    assert_eq!(stream.all_data().await, Vec::<Json>::new());
    assert_eq!(mcp.threads().await, 0);
}

#[tokio::test]
async fn what_is_not_a_message_is_refused() {
    let mcp = Mcp::connect(json!({})).await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"two","arguments":{}{}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    for (text, code) in [
        ("", -32700),
        ("{", -32700),
        (deep.as_str(), -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#,
            -32600,
        ),
        (r#""ping""#, -32600),
    ] {
        let opened = mcp.client.post_text("/mcp", text).await;
        assert_eq!(opened.status, StatusCode::BAD_REQUEST, "{text}");
        assert_eq!(opened.whole().await["error"]["code"], code, "{text}");
    }
    let huge = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, u64::MAX);
    let reply = mcp.client.post_text("/mcp", &huge).await.whole().await;
    assert_eq!(reply["id"], u64::MAX);
    for method in ["resources/list", "tools/delete", ""] {
        let reply = mcp.request(method, json!({})).await;
        assert_eq!(reply["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn headers_decide_before_the_message() {
    let mcp = Mcp::connect(json!({})).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for (header, status) in [
        (
            ("mcp-protocol-version", "1999-01-01"),
            StatusCode::BAD_REQUEST,
        ),
        (("mcp-session-id", "unknown"), StatusCode::NOT_FOUND),
        (("accept", "text/html"), StatusCode::NOT_ACCEPTABLE),
        (("origin", "https://evil.example"), StatusCode::FORBIDDEN),
        (("accept", "*/*"), StatusCode::OK),
    ] {
        let opened = mcp
            .client
            .open("POST", "/mcp", &[header], Some(ping.clone()))
            .await;
        assert_eq!(opened.status, status, "{header:?}");
    }
    for method in ["GET", "DELETE"] {
        let opened = mcp.client.open(method, "/mcp", &[], None).await;
        assert_eq!(opened.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(opened.header("allow"), "POST");
    }
}
