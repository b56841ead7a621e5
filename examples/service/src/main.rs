//! A web service of a graph: starts refunds, asks a person, streams what happens. Its README shows how to call it.

use axum::extract::{Json, Path, State as Extract};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event as Sent, Sse};
use axum::routing::{get, post};
use futures_util::stream::{Stream, unfold};
use superstep::prelude::*;
use superstep::{DriveError, InterruptId, RunResult, Seq};

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

type App = Extract<(Runtime, Graph<Refund>)>;
type Reply<T> = Result<T, (StatusCode, String)>;

fn refused(error: DriveError) -> (StatusCode, String) {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or_default();
    (status, format!("{error:?}"))
}

async fn start(app: App, Path(id): Path<String>, Json(amount): Json<u64>) -> Reply<StatusCode> {
    let thread = app.0.0.thread(&app.0.1, id).map_err(refused)?;
    let begun = thread.begin(RefundUpdate::default().amount(amount)).await;
    begun.map(|_| StatusCode::ACCEPTED).map_err(refused)
}

type Ids = Path<(String, String)>;

async fn answer(app: App, Path((id, to)): Ids, Json(yes): Json<bool>) -> Reply<StatusCode> {
    let thread = app.0.0.thread(&app.0.1, id).map_err(refused)?;
    let to: InterruptId = to
        .parse()
        .map_err(|error| refused(DriveError::from(error)))?;
    let begun = thread.begin_answer(to, yes).await;
    begun.map(|_| StatusCode::ACCEPTED).map_err(refused)
}

async fn show(app: App, Path(id): Path<String>) -> Reply<Json<Option<RunResult<Refund>>>> {
    let thread = app.0.0.thread(&app.0.1, id).map_err(refused)?;
    thread.result().await.map(Json).map_err(refused)
}

async fn events(
    app: App,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Reply<Sse<impl Stream<Item = Result<Sent, axum::Error>>>> {
    let thread = app.0.0.thread(&app.0.1, id).map_err(refused)?;
    let last = headers.get("last-event-id");
    let last = last.and_then(|last| last.to_str().ok()?.parse().ok());
    let events = last.map_or_else(|| thread.events(Seq(0)), |last| thread.events_after(last));
    Ok(Sse::new(unfold(events, |mut events| async move {
        let event = events.next().await.ok()?;
        let sent = Sent::default().json_data(&event);
        let with_id = |sent: Sent| {
            event
                .id()
                .map_or(sent.clone(), |id| sent.id(id.to_string()))
        };
        Some((sent.map(with_id), events))
    })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("refund").node("pay", pay);
    let graph = graph.edge(START, "pay").edge("pay", END).build()?;
    let runtime = Runtime::new(superstep_sqlite::Sqlite::open("service.db")?);
    runtime.register(&graph);
    let app = axum::Router::new()
        .route("/refunds/{id}", post(start).get(show))
        .route("/refunds/{id}/answers/{interrupt}", post(answer))
        .route("/refunds/{id}/events", get(events))
        .with_state((runtime.clone(), graph));
    let address = std::env::args()
        .nth(1)
        .unwrap_or("127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    let (recovered, served) = tokio::join!(runtime.recover(), axum::serve(listener, app));
    recovered?;
    Ok(served?)
}
