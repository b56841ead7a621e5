//! Human-in-the-loop over HTTP: a web handler starts a thread, shows its open question and takes the answer.
//!
//! Run it: `cargo run -p example-approval-over-http` (an address as an argument replaces the default, `127.0.0.1:8080`)
//!
//! ```text
//! $ curl -X POST localhost:8080/refunds/order-7 -d '{"amount": 120}'
//! {"open":[{"id":"5d0e…","question":"Refund 120 for order-7?"}],"state":{"amount":120,"approved":null,"receipt":null}}
//!
//! $ # Stop the program, start it again: the question is still open.
//! $ curl localhost:8080/refunds/order-7
//! {"open":[{"id":"5d0e…","question":"Refund 120 for order-7?"}],"state":{"amount":120,"approved":null,"receipt":null}}
//!
//! $ curl -X POST localhost:8080/refunds/order-7/answers/5d0e… -d true
//! {"open":[],"state":{"amount":120,"approved":true,"receipt":"paid 120 under a1b2…"}}
//! ```
//!
//! A second answer to the same question gets `409 Conflict`: exactly one answer wins. No process waits while a question is
//! open. The threads are in `approval_over_http.db`; delete that file to start over.

#[cfg(test)]
mod tests;

use std::convert::Infallible;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::{Value as Json, json};
use superstep::DriveError;
use superstep::prelude::*;
use superstep_sqlite::Sqlite;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

#[derive(Clone, Debug, Default, State)]
struct Refund {
    amount: u64,
    approved: Option<bool>,
    receipt: Option<String>,
}

/// Interrupts the run until a person answers.
async fn approve(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
    let question = format!("Refund {} for {}?", refund.amount, cx.thread().name());
    // An answer that is not a boolean is refused, and the question stays open.
    let interrupt = Interrupt::new("approve", question).schema(json!({ "type": "boolean" }));
    let approved: bool = cx.interrupt(interrupt).await?;
    Ok(RefundUpdate::default().approved(Some(approved)))
}

async fn pay(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
    if refund.approved != Some(true) {
        return Ok(RefundUpdate::default());
    }
    // The key is the same in every attempt, so a payment service that deduplicates by it pays once.
    let key = cx.effect_key("pay");
    let receipt = format!("paid {} under {key}", refund.amount);
    Ok(RefundUpdate::default().receipt(receipt))
}

/// The service: a runtime and the graph that it runs.
#[derive(Clone)]
struct Refunds {
    runtime: Runtime,
    graph: Graph<Refund>,
}

impl Refunds {
    fn open(database: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let graph = Graph::builder("refund")
            .node("approve", approve)
            .node("pay", pay)
            .edge(START, "approve")
            .edge("approve", "pay")
            .edge("pay", END)
            .build()?;
        let runtime = Runtime::new(Sqlite::open(database)?);
        runtime.register(&graph);
        Ok(Self { runtime, graph })
    }

    /// Serves requests. First recovers the runs that the last process was in the middle of.
    async fn serve(self, listener: TcpListener) -> Result<(), std::io::Error> {
        for (thread, outcome) in self
            .runtime
            .recover()
            .await
            .map_err(std::io::Error::other)?
        {
            eprintln!("recovered {thread}: {outcome:?}");
        }
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            // Forget the connections that have ended.
            while connections.try_join_next().is_some() {}
            let refunds = self.clone();
            connections.spawn(async move {
                let handler = service_fn(move |request| respond(refunds.clone(), request));
                let server = Builder::new(TokioExecutor::new());
                if let Err(error) = server.serve_connection(TokioIo::new(stream), handler).await {
                    eprintln!("connection failed: {error}");
                }
            });
        }
    }

    async fn handle(&self, method: &Method, path: &[&str], body: &Json) -> Result<Json, Failure> {
        let ["refunds", name, rest @ ..] = path else {
            return Err(Failure::not_found("no such page"));
        };
        let thread = self.runtime.thread(&self.graph, *name)?;
        match (method, rest) {
            (&Method::GET, []) => {}
            (&Method::POST, []) => {
                let amount = body["amount"].as_u64();
                let amount = amount.ok_or(Failure::bad_request("`amount` must be a number"))?;
                // A client that repeats the request, because it saw no response, does not start a second refund.
                if thread.state().await?.is_none() {
                    thread.start(RefundUpdate::default().amount(amount)).await?;
                }
            }
            (&Method::POST, ["answers", id]) => {
                let id = id.parse();
                let id = id.map_err(|_| Failure::bad_request("not the id of a question"))?;
                thread.answer(id, body).await?;
            }
            _ => return Err(Failure::not_found("no such page")),
        }
        let state = thread.state().await?;
        let state = state.ok_or(Failure::not_found("no such refund"))?;
        let mut open = Vec::new();
        for asked in thread.interrupts().await? {
            let question: Json = asked.interrupt.request.decode().map_err(DriveError::from)?;
            open.push(json!({ "id": asked.interrupt.id.to_string(), "question": question }));
        }
        let state: Json = state.values.decode().map_err(DriveError::from)?;
        Ok(json!({ "state": state, "open": open }))
    }
}

async fn respond(
    refunds: Refunds,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = request.into_body().collect().await;
    let body = body.map(|body| serde_json::from_slice(&body.to_bytes()).unwrap_or_default());
    #[expect(
        clippy::disallowed_methods,
        reason = "hyper drops this future when the client hangs up, and a dropped run stops"
    )]
    let handled = tokio::spawn(async move {
        let path: Vec<&str> = path.split('/').skip(1).collect();
        let body = body.map_err(|error| Failure::bad_request(&error.to_string()))?;
        refunds.handle(&method, &path, &body).await
    });
    let (status, body) = match handled.await {
        Ok(Ok(body)) => (StatusCode::OK, body),
        Ok(Err(failure)) => (failure.status, json!({ "error": failure.message })),
        Err(panic) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            json!({ "error": panic.to_string() }),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(format!("{body}\n"))));
    *response.status_mut() = status;
    Ok(response)
}

/// What a client did wrong, or what failed here.
#[derive(Debug)]
struct Failure {
    status: StatusCode,
    message: String,
}

impl Failure {
    fn bad_request(message: &str) -> Self {
        let (status, message) = (StatusCode::BAD_REQUEST, message.to_owned());
        Self { status, message }
    }

    fn not_found(message: &str) -> Self {
        let (status, message) = (StatusCode::NOT_FOUND, message.to_owned());
        Self { status, message }
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        let status = match error {
            DriveError::AnswerRefused { .. } => StatusCode::BAD_REQUEST,
            // The question has its answer already, or the thread has a run.
            _ if error.is_refusal() => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let message = error.to_string();
        Self { status, message }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    eprintln!("listening at http://{}", listener.local_addr()?);
    let refunds = Refunds::open("approval_over_http.db")?;
    Ok(refunds.serve(listener).await?)
}
