//! A web service of a graph: starts refunds, asks a person, streams what happens. Its README shows how to call it.

use axum::extract::{Json, Path, State as Extract};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Sse, sse};
use axum::routing::{get, post};
use axum::{BoxError, Router};
use futures_util::StreamExt;
use superstep::prelude::*;
use superstep::{EventId, RegisteredGraph, RunResult};

#[derive(Clone, Debug, Default, State)]
struct Refund {
    amount: u64,
    receipt: Option<String>,
}

async fn pay(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
    let approval = Interrupt::new("approve", format!("Refund {}?", refund.amount));
    let is_approved: bool = cx.interrupt(approval).await?;
    let key = cx.effect_key("pay");
    Ok(RefundUpdate::default().receipt(is_approved.then(|| format!("paid under {key}"))))
}

type App = Extract<RegisteredGraph<Refund>>;
type Reply<T = StatusCode> = Result<T, (StatusCode, String)>;

async fn start(app: App, Path(id): Path<String>, Json(amount): Json<u64>) -> Reply {
    let input = RefundUpdate::default().amount(amount);
    app.thread(id)?.begin(input).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn answer(app: App, Path((id, to)): Path<(String, String)>, Json(yes): Json<bool>) -> Reply {
    app.thread(id)?.begin_answer(&*to, yes).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn show(app: App, Path(id): Path<String>) -> Reply<Json<Option<RunResult<Refund>>>> {
    Ok(Json(app.thread(id)?.result().await?))
}

async fn events(app: App, Path(id): Path<String>, headers: HeaderMap) -> Reply<impl IntoResponse> {
    let last = EventId::from_header(headers.get("last-event-id"))?;
    let events = app.thread(id)?.events_after(last);
    Ok(Sse::new(events.map(|event| {
        let event = event?;
        let sent = sse::Event::default().json_data(&event)?;
        Ok::<_, BoxError>(match event.id() {
            Some(id) => sent.id(id.to_string()),
            None => sent,
        })
    })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("refund").node("pay", pay);
    let graph = graph.edge(START, "pay").edge("pay", END).build()?;
    let runtime = Runtime::new(superstep_sqlite::Sqlite::open("service.db")?);
    let app = Router::new()
        .route("/refunds/{id}", post(start).get(show))
        .route("/refunds/{id}/answers/{interrupt}", post(answer))
        .route("/refunds/{id}/events", get(events))
        .with_state(runtime.register(&graph));
    runtime.begin_recovery().await?;
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, app).await?)
}
