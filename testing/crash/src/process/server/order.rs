//! What the clients of the trials ask of the server: runs of its graphs, each with a mark of its own.

use serde_json::{Value as Json, json};

use super::http::HttpRequest;

/// A run that a client wants.
#[derive(Debug, Clone)]
pub(super) struct RunOrder {
    /// Nothing for a stateless run.
    pub(super) thread: Option<String>,
    /// Its name, in its metadata, in the state and in the ledger.
    pub(super) mark: String,
    pub(super) ask: Ask,
    pub(super) route: Route,
    pub(super) strategy: Option<&'static str>,
    /// Whether it has an idempotency key, so that the client may repeat the request until it gets a reply.
    pub(super) is_keyed: bool,
}

/// What is asked of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// Three nodes with effects, the second of which takes this long.
    Steps { ms: u64 },
    /// The first of two questions.
    Questions,
    /// An answer.
    Answer { value: u64 },
}

/// How the client follows the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Create,
    Wait,
    Stream,
}

impl Ask {
    fn graph(self) -> &'static str {
        match self {
            Ask::Steps { .. } => "steps",
            Ask::Questions | Ask::Answer { .. } => "questions",
        }
    }
}

impl RunOrder {
    pub(super) fn request(&self) -> HttpRequest {
        let place = match &self.thread {
            Some(thread) => format!("/threads/{thread}/runs"),
            None => "/runs".to_owned(),
        };
        let route = match self.route {
            Route::Create => "",
            Route::Wait => "/wait",
            Route::Stream => "/stream",
        };
        let request = HttpRequest::post(format!("{place}{route}"), self.body());
        match self.is_keyed {
            true => request.header("idempotency-key", self.mark.clone()),
            false => request,
        }
    }

    /// The same by every route, so that a repeated request asks for the same run.
    fn body(&self) -> Json {
        let mut body = json!({
            "assistant_id": self.ask.graph(),
            "metadata": { "mark": self.mark },
            "stream_mode": ["values", "updates"],
        });
        match self.ask {
            Ask::Steps { ms } => body["input"] = json!({ "mark": self.mark, "ms": ms }),
            Ask::Questions => body["input"] = json!({ "mark": self.mark, "ms": 0 }),
            Ask::Answer { value } => body["command"] = json!({ "resume": value }),
        }
        if let Some(strategy) = self.strategy {
            body["multitask_strategy"] = strategy.into();
        }
        body
    }
}

/// The nodes of the graph `steps`, in the order in which they run.
pub(super) const STEPS: [&str; 3] = ["first", "second", "third"];
/// The nodes of the graph `questions` that act on answers.
pub(super) const ACTS: [&str; 2] = ["act_one", "act_two"];
/// The effects of each node.
pub(super) const EFFECTS: [&str; 2] = ["one", "two"];
