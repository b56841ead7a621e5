//! AG-UI at `/ag-ui/{assistant_id}`: a run of an assistant as the events that user interfaces such as CopilotKit read.
//!
//! A pause is the outcome of a run, and the answers are in `resume` of the next one. Closing the connection is the client's only way
//! to stop a run, so a run whose client has gone is cancelled after some seconds.

mod input;
mod messages;
mod renderer;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::post;
use superstep::graph::Definition;
use superstep::registry::RunRow;

use crate::ag_ui::input::AgentInput;
use crate::ag_ui::renderer::AgUiRenderer;
use crate::caller::{Caller, Payload};
use crate::error::ApiResult;
use crate::feed::RunFollower;
use crate::follow::{RunEvents, RunItem, RunResult, SseSource, result_of, stream, thread_named};
use crate::start::{Awaits, ThreadTarget, submit};
use crate::stream::sse;
use crate::{App, assistant};

/// Returns the route of the protocol.
pub(crate) fn routes() -> Router<App> {
    Router::new().route("/ag-ui/{assistant_id}", post(run))
}

async fn run(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Payload(input): Payload<AgentInput>,
) -> ApiResult<Response> {
    caller.require(input.permission())?;
    let assistant = assistant::get(&app, &caller, &name).await?;
    let graph = assistant::graph_of(&app, &assistant)?;
    let thread = thread_named(&caller, &input.thread_id)?;
    caller.check_thread(&app, &thread).await?;
    let body = input.run_body(&app, &assistant, &graph, &thread).await?;
    // Before the run is submitted, so that its feed is complete.
    app.feeds.settle(&app, &thread).await?;
    let target = ThreadTarget::Thread(thread);
    let submitted = submit(&app, &caller, target, body, Awaits::Events).await?;
    // From here on, a client that goes away has a run.
    let follower = app
        .feeds
        .follow(&app, &caller.tenant, submitted.row.id, true);
    let events = RunEvents::of(&app, &submitted.row).await?;
    Ok(stream(AgUiStream {
        renderer: AgUiRenderer::new(&graph, input.thread_id, input.run_id),
        app,
        graph,
        events,
        follower,
        has_begun: false,
        ended: None,
    }))
}

/// The events of a run.
struct AgUiStream {
    app: App,
    graph: Arc<Definition>,
    events: RunEvents,
    renderer: AgUiRenderer,
    follower: RunFollower,
    has_begun: bool,
    /// The row of the run after its end; an inner `None` if it was deleted.
    ended: Option<Option<Box<RunRow>>>,
}

impl SseSource for AgUiStream {
    async fn write_next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if !self.has_begun {
            self.has_begun = true;
            self.renderer.begin(out);
            return Ok(true);
        }
        if self.ended.is_none() {
            match self.events.next().await {
                RunItem::Event(event) => {
                    self.renderer.render(&event, out);
                    return Ok(true);
                }
                RunItem::Ended(row) => self.ended = Some(row),
                RunItem::Broken => return Err(sse::broken()),
            }
        }
        let result = match &self.ended {
            Some(Some(row)) => result_of(&self.app, &self.graph, row).await,
            _ => Ok(RunResult::Cancelled),
        };
        self.follower.run_ended();
        match result {
            Ok(result) => self.renderer.finish(&result, out),
            Err(error) => self.renderer.fail("internal", &error.detail, out),
        }
        Ok(false)
    }
}
