//! How many calls a model gets at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use archie_docs::state::DocsStateUpdate;
use archie_docs::{NAME, graph};
use futures_util::{StreamExt, stream};
use superstep::run::StreamMode;
use superstep::{Event, Outcome, Seq};
use superstep_agent::AgentEvent;
use superstep_llm::{BoxFuture, Chunk, Model, ModelError, ModelName, ReplyStream, Request, Script};

use super::kit::{Bench, MODEL, replies};

/// A server that counts the calls it has at a time. The first call is answered only when it is asked again.
#[derive(Debug)]
struct CountingServer {
    script: Arc<Script>,
    now: Arc<AtomicUsize>,
    most: AtomicUsize,
    calls: AtomicUsize,
}

struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CountingServer {
    fn new(script: Arc<Script>) -> Self {
        Self {
            script,
            now: Arc::default(),
            most: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        }
    }
}

impl Model for CountingServer {
    fn name(&self) -> &ModelName {
        self.script.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            let in_flight = InFlight(self.now.clone());
            self.most.fetch_max(now, Ordering::SeqCst);
            let call = self.calls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            let again = (call == 0).then(|| {
                Ok(Chunk::Again {
                    why: "no answer for 300 s".to_owned(),
                    attempt: 2,
                    attempts_max: 4,
                })
            });
            let chunks = stream::iter(again).chain(self.script.stream(request).await?);
            let chunks = chunks.inspect(move |_| {
                let _held = &in_flight;
            });
            Ok(Box::pin(chunks) as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.script.context_size()
    }
}

/// Runs all seven agents, and returns the server and what a person who watches is shown.
async fn watched(parallel: u32) -> (Arc<CountingServer>, Vec<String>) {
    let agents = archie_docs::writers::all();
    let names: Vec<String> = agents
        .iter()
        .map(|agent| agent.get_agent_name().to_owned())
        .collect();
    let all = names.iter().flat_map(|name| replies(name, &[90], &[]));
    let bench = Bench::new(all.collect());
    let server = Arc::new(CountingServer::new(bench.script.clone()));
    bench.deps.models.put(MODEL, server.clone());
    let graph = graph(&bench.deps).unwrap();
    assert_eq!(graph.name(), NAME);
    let thread = bench.runtime.thread(&graph, "all").unwrap();
    let input = DocsStateUpdate::default()
        .root(bench.repo().display().to_string())
        .model_name(MODEL.to_owned())
        .parallel(Some(parallel))
        .wanted(names);
    let mut events = thread.events(Seq(0)).only([StreamMode::Custom]);
    let mut shown = Vec::new();
    let mut run = std::pin::pin!(thread.start(input));
    let done = loop {
        tokio::select! {
            done = &mut run => break done.unwrap(),
            event = events.next() => if let Ok(Event::Live(live)) = event
                && let Some(AgentEvent::Again { why, .. }) = AgentEvent::of(&live)
            {
                shown.push(why.into_owned());
            },
        }
    };
    assert_eq!(done.outcome, Outcome::Finished);
    bench.script.finish().unwrap();
    (server, shown)
}

#[tokio::test]
async fn writers_keep_to_the_number_of_calls_at_a_time() {
    for parallel in [1, 3] {
        let (server, _) = watched(parallel).await;
        let most = server.most.load(Ordering::SeqCst);
        assert!(
            most <= parallel as usize,
            "{most} at a time, not {parallel}"
        );
    }
}

#[tokio::test]
async fn a_repeated_call_is_shown() {
    let (_, shown) = watched(4).await;
    assert_eq!(shown, ["no answer for 300 s"]);
}
