//! What each route takes and returns, besides the ids in its path: links from the table of routes to the schemas.
//!
//! A route that is not here is described without a body, with any result.

/// What a route takes and returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) query: &'static [QueryParameter],
    pub(super) headers: &'static [&'static str],
    pub(super) body: Option<BodyKind>,
    /// What a success returns, by its status.
    pub(super) results: &'static [(u16, ResultKind)],
    /// The form of errors of the protocol that the route speaks: a failure has this form or the usual one.
    pub(super) protocol_error: Option<&'static str>,
}

/// A field of the query string.
#[derive(Debug, Clone, Copy)]
pub(super) enum QueryParameter {
    Text(&'static str),
    RequiredText(&'static str),
    Number(&'static str),
    Flag(&'static str),
    /// Several values: repeated, or as one JSON list.
    List(&'static str),
    Word(&'static str, &'static [&'static str]),
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum BodyKind {
    /// JSON by the schema with this name.
    Json(&'static str),
    /// The same, and the body may be missing.
    OptionalJson(&'static str),
    /// The content of a file.
    Bytes,
}

/// What a success returns.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResultKind {
    Json(&'static str),
    /// The same, or `null`.
    JsonOrNull(&'static str),
    JsonList(&'static str),
    /// Any JSON value.
    AnyJson,
    /// A number of rows.
    Count,
    Empty,
    /// Server-sent events.
    Events,
    Bytes,
    Text,
    Html,
}

/// Returns the operation of a route.
pub(super) fn operation_of(method: &str, path: &str) -> Option<&'static Operation> {
    let mut all = OPERATIONS.iter();
    all.find(|found| found.method == method && found.path == path)
}

const fn op(method: &'static str, path: &'static str) -> Operation {
    Operation {
        method,
        path,
        query: &[],
        headers: &[],
        body: None,
        results: &[(200, ResultKind::AnyJson)],
        protocol_error: None,
    }
}

impl Operation {
    const fn body(mut self, schema: &'static str) -> Self {
        self.body = Some(BodyKind::Json(schema));
        self
    }

    const fn optional_body(mut self, schema: &'static str) -> Self {
        self.body = Some(BodyKind::OptionalJson(schema));
        self
    }

    const fn query(mut self, query: &'static [QueryParameter]) -> Self {
        self.query = query;
        self
    }

    const fn headers(mut self, headers: &'static [&'static str]) -> Self {
        self.headers = headers;
        self
    }

    const fn bytes(mut self) -> Self {
        self.body = Some(BodyKind::Bytes);
        self
    }

    const fn fails_with(mut self, schema: &'static str) -> Self {
        self.protocol_error = Some(schema);
        self
    }

    const fn returns(mut self, results: &'static [(u16, ResultKind)]) -> Self {
        self.results = results;
        self
    }
}

use QueryParameter::{Flag, List, Number, RequiredText, Text, Word};
use ResultKind::{AnyJson, Bytes, Count, Empty, Events, Html, Json, JsonList, JsonOrNull};

const COUNT: &[(u16, ResultKind)] = &[(200, Count)];
const EMPTY: &[(u16, ResultKind)] = &[(204, Empty)];
const EVENTS: &[(u16, ResultKind)] = &[(200, Events)];
const RUN: &[(u16, ResultKind)] = &[(200, Json("Run"))];
const THREAD: &[(u16, ResultKind)] = &[(200, Json("Thread"))];
const STATE: &[(u16, ResultKind)] = &[(200, Json("ThreadState"))];
const STATES: &[(u16, ResultKind)] = &[(200, JsonList("ThreadState"))];
const CRON: &[(u16, ResultKind)] = &[(200, Json("Cron"))];
const ASSISTANT: &[(u16, ResultKind)] = &[(200, Json("Assistant"))];
const ACTION: QueryParameter = Word("action", &["interrupt", "rollback"]);
const STATUSES: &[&str] = &[
    "pending",
    "running",
    "error",
    "success",
    "timeout",
    "interrupted",
];
const KEY: &[&str] = &["Idempotency-Key"];
const ACCEPT: &[&str] = &["Accept"];
const LAST_EVENT: &[&str] = &["Last-Event-ID"];

#[rustfmt::skip]
pub(super) const OPERATIONS: &[Operation] = &[
    op("post", "/assistants").body("AssistantCreate").returns(ASSISTANT),
    op("post", "/assistants/search").body("AssistantSearchRequest").returns(&[(200, JsonList("Assistant"))]),
    op("post", "/assistants/count").body("AssistantCountRequest").returns(COUNT),
    op("get", "/assistants/{assistant_id}").returns(ASSISTANT),
    op("patch", "/assistants/{assistant_id}").body("AssistantPatch").returns(ASSISTANT),
    op("delete", "/assistants/{assistant_id}").query(&[Flag("delete_threads")]).returns(EMPTY),
    op("get", "/assistants/{assistant_id}/graph").query(&[Text("xray")]).returns(&[(200, Json("Graph"))]),
    op("get", "/assistants/{assistant_id}/schemas").returns(&[(200, Json("GraphSchema"))]),
    op("get", "/assistants/{assistant_id}/subgraphs").query(&[Flag("recurse")]).returns(&[(200, Json("Subgraphs"))]),
    op("get", "/assistants/{assistant_id}/subgraphs/{namespace}").query(&[Flag("recurse")]).returns(&[(200, Json("Subgraphs"))]),
    op("post", "/assistants/{assistant_id}/versions").optional_body("AssistantVersionsSearchRequest").returns(&[(200, JsonList("AssistantVersion"))]),
    op("post", "/assistants/{assistant_id}/latest").query(&[Number("version")]).optional_body("AssistantVersionChange").returns(ASSISTANT),
    op("post", "/threads").body("ThreadCreate").returns(THREAD),
    op("post", "/threads/search").body("ThreadSearchRequest").returns(&[(200, JsonList("Thread"))]),
    op("post", "/threads/count").body("ThreadCountRequest").returns(COUNT),
    op("post", "/threads/prune").body("ThreadPruneRequest").returns(&[(200, Json("ThreadPruneResponse"))]),
    op("get", "/threads/{thread_id}").query(&[List("include")]).returns(THREAD),
    op("patch", "/threads/{thread_id}").headers(&["Prefer"]).body("ThreadPatch").returns(&[(200, Json("Thread")), (204, Empty)]),
    op("delete", "/threads/{thread_id}").returns(EMPTY),
    op("get", "/threads/{thread_id}/storage").returns(&[(200, Json("ThreadStorage"))]),
    op("post", "/threads/{thread_id}/copy").returns(THREAD),
    op("get", "/threads/{thread_id}/state").query(&[Flag("subgraphs"), List("select")]).returns(STATE),
    op("post", "/threads/{thread_id}/state").body("ThreadStateUpdate").returns(&[(200, Json("ThreadStateUpdateResponse"))]),
    op("get", "/threads/{thread_id}/state/{checkpoint_id}").query(&[Flag("subgraphs"), List("select")]).returns(STATE),
    op("post", "/threads/{thread_id}/state/checkpoint").body("ThreadStateCheckpointRequest").returns(STATE),
    op("get", "/threads/{thread_id}/history").query(&[Number("limit"), Text("before"), List("select")]).returns(STATES),
    op("post", "/threads/{thread_id}/history").body("ThreadStateSearch").returns(STATES),
    op("get", "/threads/{thread_id}/stream").headers(LAST_EVENT).query(&[List("stream_modes")]).returns(EVENTS),
    op("post", "/threads/{thread_id}/commands").body("ProtocolCommand").returns(&[(200, Json("ProtocolReply"))]).fails_with("ProtocolError"),
    op("post", "/threads/{thread_id}/stream/events").body("ProtocolEventStreamRequest").returns(EVENTS),
    op("post", "/threads/{thread_id}/runs").headers(KEY).body("RunCreateStateful").returns(RUN),
    op("get", "/threads/{thread_id}/runs").query(&[Number("limit"), Number("offset"), Word("status", STATUSES), List("select")]).returns(&[(200, JsonList("Run"))]),
    op("post", "/threads/{thread_id}/runs/stream").headers(KEY).body("RunCreateStreamingStateful").returns(EVENTS),
    op("post", "/threads/{thread_id}/runs/wait").headers(KEY).body("RunCreateStreamingStateful").returns(&[(200, AnyJson)]),
    op("get", "/threads/{thread_id}/runs/{run_id}").returns(RUN),
    op("delete", "/threads/{thread_id}/runs/{run_id}").returns(EMPTY),
    op("get", "/threads/{thread_id}/runs/{run_id}/join").query(&[Flag("cancel_on_disconnect")]).returns(&[(200, AnyJson)]),
    op("get", "/threads/{thread_id}/runs/{run_id}/stream").headers(LAST_EVENT).query(&[List("stream_mode"), Flag("cancel_on_disconnect")]).returns(EVENTS),
    op("post", "/threads/{thread_id}/runs/{run_id}/cancel").query(&[Flag("wait"), ACTION]).returns(&[(200, AnyJson), (202, Empty)]),
    op("post", "/threads/{thread_id}/runs/crons").body("ThreadCronCreate").returns(CRON),
    op("post", "/runs/crons").body("CronCreate").returns(CRON),
    op("post", "/runs/crons/search").body("CronSearch").returns(&[(200, JsonList("Cron"))]),
    op("post", "/runs/crons/count").body("CronCountRequest").returns(COUNT),
    op("get", "/runs/crons/{cron_id}").returns(CRON),
    op("patch", "/runs/crons/{cron_id}").body("CronPatch").returns(CRON),
    op("delete", "/runs/crons/{cron_id}").returns(EMPTY),
    op("post", "/runs").headers(KEY).body("RunCreateStateless").returns(RUN),
    op("post", "/runs/stream").headers(KEY).body("RunCreateStreamingStateless").returns(EVENTS),
    op("post", "/runs/wait").headers(KEY).body("RunCreateStreamingStateless").returns(&[(200, AnyJson)]),
    op("get", "/runs/{run_id}/stream").headers(LAST_EVENT).query(&[List("stream_mode"), Flag("cancel_on_disconnect")]).returns(EVENTS),
    op("post", "/runs/batch").body("RunBatchCreate").returns(&[(200, JsonList("Run"))]),
    op("post", "/runs/cancel").query(&[ACTION]).body("RunsCancel").returns(EMPTY),
    op("put", "/store/items").body("StorePutRequest").returns(EMPTY),
    op("get", "/store/items").query(&[RequiredText("key"), Text("namespace"), Flag("refresh_ttl")]).returns(&[(200, JsonOrNull("Item"))]),
    op("delete", "/store/items").body("StoreDeleteRequest").returns(EMPTY),
    op("post", "/store/items/search").body("StoreSearchRequest").returns(&[(200, Json("SearchItemsResponse"))]),
    op("post", "/store/namespaces").body("StoreListNamespacesRequest").returns(&[(200, Json("ListNamespaceResponse"))]),
    op("get", "/superstep/threads/{thread_id}/files").returns(&[(200, JsonList("ThreadFile"))]),
    op("put", "/superstep/threads/{thread_id}/files/{path}").bytes().returns(&[(200, Json("ThreadFile"))]),
    op("get", "/superstep/threads/{thread_id}/files/{path}").returns(&[(200, Bytes)]),
    op("delete", "/superstep/threads/{thread_id}/files/{path}").returns(EMPTY),
    op("get", "/superstep/inbox").query(&[Text("graph_id"), Text("assistant_id"), Number("limit"), Number("offset")]).returns(&[(200, JsonList("InboxItem"))]),
    op("get", "/superstep/queue").query(&[Number("limit"), Number("offset")]).returns(&[(200, Json("RunQueue"))]),
    op("get", "/superstep/sizes").query(&[Word("by", &["tenant", "graph", "thread"]), Number("limit"), Number("offset")]).returns(&[(200, JsonList("StoredSizes"))]),
    op("get", "/superstep/budgets").query(&[Number("limit"), Number("offset")]).returns(&[(200, JsonList("Budget"))]),
    op("post", "/superstep/budgets/raise").body("BudgetRaise").returns(&[(200, Json("Budget"))]),
    op("get", "/superstep/threads/{thread_id}/interrupts").query(&[Number("limit"), Number("offset")]).returns(&[(200, JsonList("ThreadInterrupt"))]),
    op("get", "/superstep/threads/{thread_id}/tree").query(&[Number("limit"), Text("before")]).returns(&[(200, Json("CheckpointTree"))]),
    op("post", "/superstep/threads/{thread_id}/diff").optional_body("StateDiffRequest").returns(&[(200, Json("StateDiff"))]),
    op("post", "/superstep/threads/{thread_id}/fork/preview").body("ForkPreviewRequest").returns(&[(200, Json("ForkPreview"))]),
    op("get", "/superstep/threads/{thread_id}/case").query(&[Text("checkpoint_id")]).returns(&[(200, Json("TestCase"))]),
    op("get", "/superstep/threads/{thread_id}/trace").returns(&[(200, Json("ThreadTrace"))]),
    op("get", "/superstep/threads/{thread_id}/labels").query(&[Text("checkpoint_id")]).returns(&[(200, Json("StateLabels"))]),
    op("post", "/superstep/keys").body("ApiKeyCreate").returns(&[(201, Json("ApiKeyWithSecret"))]),
    op("get", "/superstep/keys").query(&[Number("limit"), Number("offset")]).returns(&[(200, JsonList("ApiKey"))]),
    op("delete", "/superstep/keys/{key_id}").returns(EMPTY),
    op("post", "/superstep/keys/{key_id}/rotate").optional_body("ApiKeyRotate").returns(&[(201, Json("ApiKeyWithSecret"))]),
    op("get", "/superstep/deliveries").query(&[Word("status", &["pending", "delivered", "dead"]), Text("run_id"), Number("limit"), Number("offset")]).returns(&[(200, JsonList("Delivery"))]),
    op("post", "/superstep/deliveries/{delivery_id}/repeat").returns(&[(200, Json("Delivery"))]),
    op("get", "/superstep/me").returns(&[(200, Json("CallerInfo"))]),
    op("get", "/superstep/audit").query(&[Number("after"), Number("limit")]).returns(&[(200, Json("AuditPage"))]),
    op("get", "/superstep/ready").returns(&[(200, Json("Readiness"))]),
    op("post", "/mcp").headers(ACCEPT).body("JsonRpcRequest").returns(&[(200, AnyJson), (202, Empty)]).fails_with("JsonRpcError"),
    op("post", "/mcp/").headers(ACCEPT).body("JsonRpcRequest").returns(&[(200, AnyJson), (202, Empty)]).fails_with("JsonRpcError"),
    op("get", "/.well-known/agent-card.json").query(&[Text("assistant_id")]).returns(&[(200, AnyJson)]),
    op("post", "/a2a/{assistant_id}").headers(ACCEPT).body("JsonRpcRequest").returns(&[(200, AnyJson)]).fails_with("JsonRpcError"),
    op("post", "/ag-ui/{assistant_id}").headers(ACCEPT).body("AgUiInput").returns(EVENTS),
    op("get", "/ok").query(&[Flag("check_db")]).returns(&[(200, Json("Health"))]),
    op("get", "/info").returns(&[(200, Json("ServerInfo"))]),
    op("get", "/metrics").query(&[Word("format", &["prometheus", "json"])]).returns(&[(200, ResultKind::Text)]),
    op("get", "/docs").returns(&[(200, Html)]),
    op("get", "/openapi.json").returns(&[(200, AnyJson)]),
];
