//! What a tenant fills a server with, and the lists that must show it.

use axum::body::Body;
use http::Request;
use serde_json::{Value as Json, json};
use superstep::{ThreadId, Timestamp};
use superstep_agent::budget::{Amounts, Budgets, CallKey, Limits, Meter, Scope};

use super::Tenant;
use super::protocols::{message, rpc};

impl Tenant {
    /// Creates one thing of each kind, with the canary in every text. Tenants that are filled for the same time use the same keys.
    pub(super) async fn fill(&mut self) {
        let filling = self.keyed_threads.len();
        for graph in ["remember", "ask", "fail", "cached"] {
            self.run_on_new_thread(graph).await;
        }
        self.create_assistant_and_crons().await;
        self.store_items().await;
        self.call_over_protocols(filling).await;
        self.create_key().await;
        self.create_thread_under_key(filling).await;
        self.spend().await;
        let newest = self.client.get("/superstep/deliveries?limit=8").await;
        for delivery in newest.ok().as_array().unwrap() {
            self.note("delivery_id", &delivery["delivery_id"]);
        }
    }

    fn metadata(&self) -> Json {
        json!({ "note": self.marks.canary })
    }

    async fn run_on_new_thread(&mut self, graph: &str) {
        let canary = self.marks.canary;
        let new = json!({ "metadata": self.metadata() });
        let thread = self.client.post("/threads", new).await.ok();
        self.note("thread_id", &thread["thread_id"]);
        let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
        let run = json!({
            "assistant_id": graph, "input": { "topic": canary }, "metadata": self.metadata(),
            "webhook": self.webhook,
        });
        let run = self.client.post(&format!("{path}/runs"), run).await.ok();
        self.note("run_id", &run["run_id"]);
        // Both tenants have the default assistants.
        self.ids.add("assistant_id", &run["assistant_id"]);
        let run = format!("{path}/runs/{}", run["run_id"].as_str().unwrap());
        self.client.get(&format!("{run}/join")).await;
        self.note_checkpoints(&path).await;
        for name in [canary, "note"] {
            let file = Request::put(format!("/superstep{path}/files/{name}.txt"))
                .body(Body::from(canary))
                .unwrap();
            self.client.send(file).await.ok();
        }
    }

    /// Notes the checkpoints and the interrupts of a thread.
    async fn note_checkpoints(&mut self, path: &str) {
        for checkpoint in self.client.history(path).await {
            let checkpoint = &checkpoint["checkpoint"]["checkpoint_id"];
            self.ids.add("checkpoint_id", checkpoint);
        }
        let state = self.client.get(&format!("{path}/state")).await.ok();
        for interrupt in state["interrupts"].as_array().into_iter().flatten() {
            let id = interrupt["id"].as_str().unwrap();
            let thread = path.trim_start_matches("/threads/");
            self.ids.add("interrupt_id", &id.into());
            self.ids.add("waiting", &format!("{thread} {id}").into());
        }
    }

    async fn create_assistant_and_crons(&mut self) {
        let canary = self.marks.canary;
        let new = json!({
            "graph_id": "remember", "name": canary, "description": canary, "metadata": self.metadata(),
        });
        let assistant = self.client.post("/assistants", new).await.ok();
        self.note("assistant_id", &assistant["assistant_id"]);
        let new = json!({
            "assistant_id": "remember", "schedule": "0 0 1 1 *",
            "input": { "topic": canary }, "metadata": self.metadata(), "webhook": self.webhook,
        });
        let cron = self.client.post("/runs/crons", new).await.ok();
        self.note("cron_id", &cron["cron_id"]);
    }

    async fn store_items(&self) {
        for namespace in [json!(["shared"]), json!(["users", self.marks.canary])] {
            let item = json!({ "namespace": namespace, "key": "last", "value": self.metadata() });
            self.client.call("PUT", "/store/items", Some(item)).await;
        }
    }

    /// Leaves a thread of each protocol. Those of MCP and A2A wait for an answer.
    async fn call_over_protocols(&mut self, filling: usize) {
        let canary = self.marks.canary;
        let call = json!({ "name": "ask", "arguments": { "topic": canary } });
        let called = self.client.post("/mcp", rpc("tools/call", call)).await.ok();
        let waiting = &called["result"]["structuredContent"];
        self.note("thread_id", &waiting["thread_id"]);
        self.note("run_id", &waiting["run_id"]);
        let path = format!("/threads/{}", waiting["thread_id"].as_str().unwrap());
        self.note_checkpoints(&path).await;

        let context = format!("{canary} {filling}");
        let sent = rpc("message/send", message(canary, Some(&context), None));
        let task = self.client.post("/a2a/ask", sent).await.ok()["result"].clone();
        assert_eq!(task["status"]["state"], "input-required", "{task}");
        self.ids.add("task_id", &task["id"]);
        let (thread, run) = task["id"].as_str().unwrap().split_once(':').unwrap();
        self.note("thread_id", &thread.into());
        self.note("run_id", &run.into());
        self.note_checkpoints(&format!("/threads/{thread}")).await;

        let input = json!({
            "threadId": format!("{context} chat"), "runId": "1", "messages": [], "state": { "topic": canary },
        });
        let events = self.client.post("/ag-ui/remember", input).await;
        let events = String::from_utf8(events.bytes).unwrap();
        assert!(events.contains("RUN_FINISHED"), "{events}");
        assert!(events.contains(canary), "{events}");
    }

    async fn create_key(&mut self) {
        let canary = self.marks.canary;
        let new = json!({ "permissions": ["read"], "name": canary, "principal": canary });
        let key = self.client.post("/superstep/keys", new).await.ok();
        self.note("key_id", &key["key_id"]);
    }

    /// Creates a thread with the same request as every other tenant.
    async fn create_thread_under_key(&mut self, filling: usize) {
        let create = async || {
            let request = Request::post("/threads")
                .header("idempotency-key", format!("filling-{filling}"))
                .body(Body::from("{}"))
                .unwrap();
            self.client.send(request).await.ok()["thread_id"].clone()
        };
        let created = create().await;
        assert_eq!(create().await, created);
        self.note("thread_id", &created);
        self.keyed_threads
            .push(created.as_str().unwrap().to_owned());
    }

    /// Reserves an amount by which the tenant is known, in the budgets of a thread and of the tenant.
    async fn spend(&self) {
        let thread = self.keyed_threads.last().unwrap();
        let thread = ThreadId::of_tenant(self.marks.name, thread).unwrap();
        let budgets = Budgets::new(self.store.clone())
            .within(Scope::thread(&thread), Limits::NONE)
            .within(Scope::tenant(&thread), Limits::NONE);
        let amount = Amounts::of(Meter::Tokens, self.marks.amount);
        let call = CallKey::new(thread.name()).unwrap();
        budgets.reserve(&call, &amount, Timestamp(1)).await.unwrap();
    }

    /// Reads the lists of a server that was just filled. They show what is the tenant's own, and nothing of the other.
    pub(super) async fn check_lists(&self, other: &Self) {
        let canary = self.marks.canary.to_owned();
        let amount = self.marks.amount.to_string();
        let all = json!({ "limit": 1_000 });
        let assistant = self.ids.0["assistant_id"].last().unwrap();
        let card = format!("/.well-known/agent-card.json?assistant_id={assistant}");
        for (method, path, body, mark) in [
            ("GET", "/superstep/inbox?limit=100", Json::Null, &canary),
            (
                "GET",
                "/superstep/deliveries?limit=1000",
                Json::Null,
                &canary,
            ),
            ("GET", "/superstep/keys?limit=1000", Json::Null, &canary),
            ("GET", "/superstep/audit?limit=1000", Json::Null, &canary),
            ("GET", "/superstep/budgets?limit=1000", Json::Null, &amount),
            ("GET", card.as_str(), Json::Null, &canary),
            ("POST", "/threads/search", all.clone(), &canary),
            ("POST", "/assistants/search", all.clone(), &canary),
            ("POST", "/runs/crons/search", all.clone(), &canary),
            ("POST", "/store/items/search", all.clone(), &canary),
            ("POST", "/store/namespaces", json!({}), &canary),
            ("POST", "/mcp", rpc("tools/list", json!({})), &canary),
            ("POST", "/a2a/ask", rpc("tasks/list", json!({})), &canary),
        ] {
            let body = (method == "POST").then_some(body);
            let reply = self.client.call(method, path, body).await;
            self.check(other, path, &reply);
            let text = String::from_utf8_lossy(&reply.bytes);
            assert!(text.contains(mark), "{path} does not show {mark}: {text}");
        }
    }
}
