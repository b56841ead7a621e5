//! Exports the traces of the runs that a server executes, as the other commands do: to the backends that the environment names.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archie_agent::Agent;
use superstep::checkpoint::{BoxFuture, Metadata};
use superstep::registry::{NewDelivery, RunEnd, RunRow};
use superstep::{RunEndHook, RunEndHookError, Runtime, Timestamp};
use superstep_agent::trace::AgentTrace;

use crate::app::App;
use crate::terminal::print_error;
use crate::trace_export::read_trace;

/// Reads the trace of each run that ends: a stateless run's thread is deleted soon after.
pub(super) struct EndedRuns {
    runtime: Runtime,
    agents: Vec<Arc<Agent>>,
    has_content: bool,
    /// What was read, and since when it is new.
    ended: Mutex<Vec<(AgentTrace, Timestamp)>>,
}

impl RunEndHook for EndedRuns {
    fn before_end<'a>(
        &'a self,
        run: &'a RunRow,
        _: &'a RunEnd,
    ) -> BoxFuture<'a, Result<Vec<NewDelivery>, RunEndHookError>> {
        Box::pin(async move {
            match self.read(run).await {
                Ok(Some(ended)) => self.ended().push(ended),
                Ok(None) => {}
                // Exporting never makes a run fail.
                Err(why) => {
                    let run = run.id;
                    print_error(&format!("the trace of run {run} is not exported: {why}"));
                }
            }
            Ok(Vec::new())
        })
    }
}

impl EndedRuns {
    /// Returns a hook, if there is a backend to export to.
    pub(super) fn of(app: &App) -> Option<Arc<Self>> {
        app.traces.is_on().then(|| {
            Arc::new(Self {
                runtime: app.runtime.clone(),
                agents: app.agents.clone(),
                has_content: app.traces.has_content(),
                ended: Mutex::default(),
            })
        })
    }

    async fn read(&self, run: &RunRow) -> Result<Option<(AgentTrace, Timestamp)>, String> {
        // A run that was recovered has spans from before it was taken the last time.
        let since = match run.attempts {
            0 | 1 => run.updated,
            _ => run.created,
        };
        let graph = run.metadata.get("graph_id").and_then(|name| name.as_str());
        let agent = graph.and_then(|name| self.agents.iter().find(|agent| agent.name() == name));
        let Some(agent) = agent else {
            return Ok(None);
        };
        let thread = agent.thread(&self.runtime, &run.thread.to_string(), Metadata::new());
        let thread = thread.map_err(|error| error.to_string())?;
        let trace = read_trace(&*thread, self.has_content).await?;
        Ok(Some((trace, since)))
    }

    /// Gives the exporter what has ended, again and again.
    pub(super) async fn forward_forever(&self, app: &App) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.forward(app);
        }
    }

    /// Gives the exporter what has ended.
    pub(super) fn forward(&self, app: &App) {
        let ended = std::mem::take(&mut *self.ended());
        for (trace, since) in ended {
            app.traces.add_ended(trace, since);
        }
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(AgentTrace, Timestamp)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const EVERY: Duration = Duration::from_millis(500);
