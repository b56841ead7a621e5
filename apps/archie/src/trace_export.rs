//! Exports the traces of runs while they happen, to the backends that the environment names: LangSmith by `LANGSMITH_…`, any
//! OTLP backend by `OTEL_EXPORTER_OTLP_…`. Exporting never blocks a run and never makes it fail.
//!
//! What people, models and tools said is sent only if `ARCHIE_TRACE_CONTENT` is set.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use archie_agent::Terminal;
use archie_agent::clock::now;
use serde_json::Value as Json;
use superstep::AnyThread;
use superstep::trace::Trace;
use superstep_agent::otlp::{Otlp, SentSpans};
use superstep_agent::trace::AgentTrace;
use superstep_llm::Secret;
use tokio::sync::Mutex as AsyncMutex;

/// Backends of this process, and the threads whose traces they get.
#[derive(Default)]
pub struct TraceExport {
    backends: Vec<Otlp>,
    has_content: bool,
    threads: Mutex<Vec<Arc<ExportedThread>>>,
    /// Why a backend cannot be used at all.
    problem: Option<String>,
    has_warned: AtomicBool,
}

struct ExportedThread {
    thread: Arc<dyn AnyThread>,
    /// What each backend has received.
    sent: AsyncMutex<Vec<SentSpans>>,
}

/// Address of a backend, with its headers.
struct Target {
    url: String,
    headers: Vec<(&'static str, String)>,
    project: String,
}

impl TraceExport {
    /// Reads the environment. Without its variables, nothing is exported.
    pub fn from_env() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut export = Self {
            has_content: variable("ARCHIE_TRACE_CONTENT").is_some_and(|value| is_on(&value)),
            ..Self::default()
        };
        for target in targets(variable) {
            let mut backend = Otlp::to(&target.url)
                .service("archie")
                .project(target.project);
            for (name, value) in target.headers {
                backend = backend.header(name, Secret::new(value));
            }
            if export.has_content {
                backend = backend.error_texts();
            }
            match backend.build() {
                Ok(backend) => export.backends.push(backend),
                Err(error) => export.problem = Some(error.to_string()),
            }
        }
        export
    }

    /// Exports what happens on this thread from now on.
    pub fn add(&self, thread: &Arc<dyn AnyThread>) {
        let mut threads = self.threads();
        let is_known = |known: &Arc<ExportedThread>| known.thread.id() == thread.id();
        if self.backends.is_empty() || threads.iter().any(is_known) {
            return;
        }
        let sent = self.backends.iter().map(|_| SentSpans::since(now()));
        threads.push(Arc::new(ExportedThread {
            thread: thread.clone(),
            sent: AsyncMutex::new(sent.collect()),
        }));
    }

    /// Runs some work, and exports the traces of its threads meanwhile and once more after it.
    pub async fn during<T>(&self, work: impl Future<Output = T>, terminal: &dyn Terminal) -> T {
        if let Some(problem) = &self.problem {
            self.warn(problem, terminal);
        }
        if self.backends.is_empty() {
            return work.await;
        }
        let mut work = Box::pin(work);
        let mut sweeps = Box::pin(self.sweep_forever(terminal));
        let done = tokio::select! {
            done = &mut work => done,
            never = &mut sweeps => match never {},
        };
        drop(sweeps);
        if tokio::time::timeout(LAST_SWEEP, self.sweep(terminal))
            .await
            .is_err()
        {
            let why = format!(
                "the backend did not answer within {} s",
                LAST_SWEEP.as_secs()
            );
            self.warn(&why, terminal);
        }
        done
    }

    async fn sweep_forever(&self, terminal: &dyn Terminal) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.sweep(terminal).await;
        }
    }

    /// Sends the spans that have ended since the last time.
    async fn sweep(&self, terminal: &dyn Terminal) {
        let threads = self.threads().clone();
        for exported in threads {
            let Ok(mut trace) = exported.thread.trace().await else {
                continue;
            };
            if self.has_content {
                add_content(&mut trace, &*exported.thread).await;
            }
            let trace = AgentTrace::from(trace);
            let mut sent = exported.sent.lock().await;
            for (backend, sent) in self.backends.iter().zip(sent.iter_mut()) {
                if let Err(error) = backend.send_new(trace.as_trace(), sent).await {
                    self.warn(&error.to_string(), terminal);
                }
            }
        }
    }

    /// Says once that traces do not arrive.
    fn warn(&self, why: &str, terminal: &dyn Terminal) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            terminal.aside(&format!(
                "traces are not exported: {why}; the run goes on, and `archie trace THREAD --otlp URL` sends it later"
            ));
        }
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ExportedThread>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TraceExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceExport")
            .field("backends", &self.backends)
            .finish_non_exhaustive()
    }
}

/// Adds the state of the thread to its last run, if that has ended.
async fn add_content(trace: &mut Trace, thread: &dyn AnyThread) {
    let Some(run) = trace.runs.last_mut().filter(|run| run.end.is_some()) else {
        return;
    };
    let Ok(Some(state)) = thread.state(None).await else {
        return;
    };
    if let Ok(values) = state.values.decode::<Json>() {
        let mut text = values.to_string();
        text.truncate(text.floor_char_boundary(CONTENT_BYTES_MAX));
        run.fields.insert(OUTPUT_VALUE.to_owned(), text.into());
    }
}

/// Returns the backends that the environment names.
fn targets(variable: impl Fn(&str) -> Option<String>) -> Vec<Target> {
    let mut found = Vec::new();
    let is_set = |name: &str| variable(name).is_some_and(|value| is_on(&value));
    if is_set("LANGSMITH_TRACING") {
        let base = variable("LANGSMITH_ENDPOINT").unwrap_or_else(|| LANGSMITH.to_owned());
        let project = variable("LANGSMITH_PROJECT").unwrap_or_else(|| "default".to_owned());
        let mut headers = vec![("langsmith-project", project.clone())];
        headers.extend(variable("LANGSMITH_API_KEY").map(|key| ("x-api-key", key)));
        found.push(Target {
            url: with_path(&base, "/otel/v1/traces"),
            headers,
            project,
        });
    }
    let is_off = is_set("OTEL_SDK_DISABLED")
        || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|url| with_path(&url, "/v1/traces"));
    let url = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(base);
    if let Some(url) = url.filter(|_| !is_off) {
        found.push(Target {
            url,
            // The exporter itself reads OTEL_EXPORTER_OTLP_HEADERS.
            headers: Vec::new(),
            project: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "archie".to_owned()),
        });
    }
    found
}

fn with_path(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    match base.ends_with(path) {
        true => base.to_owned(),
        false => format!("{base}{path}"),
    }
}

fn is_on(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "1" | "true" | "yes" | "on"
    )
}

/// Attribute with the outcome of a run, as OpenInference and LangSmith read it.
const OUTPUT_VALUE: &str = "output.value";
const LANGSMITH: &str = "https://api.smith.langchain.com";
const EVERY: Duration = Duration::from_secs(1);
/// Longest time that a finished command waits for its last spans to arrive.
const LAST_SWEEP: Duration = Duration::from_secs(3);
const CONTENT_BYTES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        targets(variable)
            .into_iter()
            .map(|target| target.url)
            .collect()
    }

    #[test]
    fn the_environment_names_the_backends() {
        assert_eq!(urls(&[]), [""; 0]);
        assert_eq!(
            urls(&[("LANGSMITH_API_KEY", "k")]),
            [""; 0],
            "not switched on"
        );
        assert_eq!(
            urls(&[("LANGSMITH_TRACING", "true")]),
            ["https://api.smith.langchain.com/otel/v1/traces"]
        );
        assert_eq!(
            urls(&[
                ("LANGSMITH_TRACING", "1"),
                ("LANGSMITH_ENDPOINT", "http://127.0.0.1:1984/"),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
            ]),
            [
                "http://127.0.0.1:1984/otel/v1/traces",
                "http://127.0.0.1:4318/v1/traces"
            ]
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h/own");
        assert_eq!(urls(&[own]), ["http://h/own"]);
        assert_eq!(urls(&[own, ("OTEL_SDK_DISABLED", "true")]), [""; 0]);
        assert_eq!(urls(&[own, ("OTEL_TRACES_EXPORTER", "none")]), [""; 0]);
    }
}
