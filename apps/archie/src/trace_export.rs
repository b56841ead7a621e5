//! Exports the traces of runs while they happen, to the backends that the environment names: LangSmith by `LANGSMITH_…`, any
//! OTLP backend by `OTEL_EXPORTER_OTLP_…`. Exporting never blocks a run and never makes it fail.
//!
//! What people, models and tools said is sent only if `ARCHIE_TRACE_CONTENT` is set.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archie_agent::Terminal;
use archie_agent::clock::now;
use futures_util::future::join_all;
use serde_json::Value as Json;
use superstep::trace::Trace;
use superstep::{AnyThread, Timestamp};
use superstep_agent::otlp::{Otlp, SentSpans};
use superstep_agent::trace::AgentTrace;
use superstep_llm::Secret;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, timeout_at};

/// Backends of this process, and the threads whose traces they get.
#[derive(Default)]
pub struct TraceExport {
    backends: Vec<Otlp>,
    has_content: bool,
    threads: Mutex<Vec<Arc<ExportedThread>>>,
    /// Why a backend cannot be used at all.
    problem: Option<String>,
    warned: Mutex<Option<Warning>>,
}

struct ExportedThread {
    source: TraceSource,
    /// When a command last asked for the thread.
    added: Mutex<Timestamp>,
    /// What each backend has received.
    sent: Vec<AsyncMutex<SentSpans>>,
}

/// Where the trace of a thread comes from.
enum TraceSource {
    /// A thread that a command works on: its trace grows.
    Thread(Arc<dyn AnyThread>),
    /// A run that has ended, as it was read then.
    Ended(Box<AgentTrace>),
}

/// Trace of a thread, as it was read for a sweep.
struct SweptTrace {
    exported: Arc<ExportedThread>,
    trace: AgentTrace,
}

/// What the person was told last.
struct Warning {
    why: String,
    is_last: bool,
}

/// How long a sweep may take, and whether it is the last of a command.
#[derive(Clone, Copy)]
struct SweepKind {
    limit: Duration,
    is_last: bool,
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
            problem: shared_keys(variable),
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
        if self.backends.is_empty() {
            return;
        }
        let now = now();
        let mut known = threads.iter();
        let is_it = |known: &&Arc<ExportedThread>| match &known.source {
            TraceSource::Thread(found) => found.id() == thread.id(),
            TraceSource::Ended(_) => false,
        };
        if let Some(known) = known.find(is_it) {
            *locked(&known.added) = now;
            return;
        }
        threads.push(self.exported(TraceSource::Thread(thread.clone()), now));
    }

    /// Whether there is a backend.
    pub fn is_on(&self) -> bool {
        !self.backends.is_empty()
    }

    /// Whether what people, models and tools said is exported.
    pub fn has_content(&self) -> bool {
        self.has_content
    }

    /// Exports what happened since a time in a trace that was read when its last run had ended.
    pub fn add_ended(&self, trace: AgentTrace, since: Timestamp) {
        let mut threads = self.threads();
        if self.backends.is_empty() {
            return;
        }
        if threads.len() >= ENDED_MAX {
            // A backend that is down must not fill the memory of a server. The log of the thread still has everything.
            threads.remove(0);
        }
        threads.push(self.exported(TraceSource::Ended(Box::new(trace)), since));
    }

    fn exported(&self, source: TraceSource, since: Timestamp) -> Arc<ExportedThread> {
        let sent = self.backends.iter().map(|_| SentSpans::since(since));
        Arc::new(ExportedThread {
            source,
            added: Mutex::new(since),
            sent: sent.map(AsyncMutex::new).collect(),
        })
    }

    /// Runs some work, and exports the traces of its threads meanwhile and once more after it.
    pub async fn during<T>(&self, work: impl Future<Output = T>, terminal: &dyn Terminal) -> T {
        if let Some(problem) = &self.problem {
            self.warn(problem, REGULAR, terminal);
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
        self.sweep(LAST, terminal).await;
        done
    }

    async fn sweep_forever(&self, terminal: &dyn Terminal) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.sweep(REGULAR, terminal).await;
        }
    }

    /// Sends the spans that have ended since the last time to all backends at once: one that is slow does not hold up another.
    async fn sweep(&self, kind: SweepKind, terminal: &dyn Terminal) {
        let deadline = Instant::now() + kind.limit;
        let late = format!("exporting took longer than {} s", kind.limit.as_secs());
        let threads = self.threads().clone();
        let mut traces = Vec::new();
        for exported in threads {
            let read = timeout_at(deadline, self.read(&exported)).await;
            match read {
                Ok(Ok(trace)) => traces.push(SweptTrace { exported, trace }),
                Ok(Err(why)) => self.warn(&why, kind, terminal),
                Err(_) => self.warn(&late, kind, terminal),
            }
        }
        let sends: Vec<_> = (0..self.backends.len())
            .map(|at| timeout_at(deadline, self.send(at, &traces)))
            .collect();
        let mut is_sent = true;
        for sent in join_all(sends).await {
            if let Err(why) = sent.unwrap_or_else(|_| Err(late.clone())) {
                is_sent = false;
                self.warn(&why, kind, terminal);
            }
        }
        if is_sent {
            let is_over = |known: &Arc<ExportedThread>| {
                let mut read = traces.iter();
                read.any(|read| Arc::ptr_eq(&read.exported, known) && read.is_over())
            };
            self.threads().retain(|known| !is_over(known));
        }
    }

    async fn read(&self, exported: &ExportedThread) -> Result<AgentTrace, String> {
        match &exported.source {
            TraceSource::Thread(thread) => read_trace(&**thread, self.has_content).await,
            TraceSource::Ended(trace) => Ok((**trace).clone()),
        }
    }

    /// Sends what one backend does not have yet. Returns the first failure; the other threads are sent nevertheless.
    async fn send(&self, at: usize, traces: &[SweptTrace]) -> Result<(), String> {
        let mut result = Ok(());
        for swept in traces {
            let (Some(backend), Some(sent)) = (self.backends.get(at), swept.exported.sent.get(at))
            else {
                continue;
            };
            let mut sent = sent.lock().await;
            let outcome = backend.send_new(swept.trace.as_trace(), &mut sent).await;
            if let Err(error) = outcome
                && result.is_ok()
            {
                result = Err(error.to_string());
            }
        }
        result
    }

    /// Says that traces do not arrive: once while a command works, and once more at its end if the reason is another one.
    fn warn(&self, why: &str, kind: SweepKind, terminal: &dyn Terminal) {
        let mut warned = locked(&self.warned);
        let is_new = warned
            .as_ref()
            .is_none_or(|before| kind.is_last && !before.is_last && before.why != why);
        if !is_new {
            return;
        }
        *warned = Some(Warning {
            why: why.to_owned(),
            is_last: kind.is_last,
        });
        terminal.aside(&format!(
            "traces are not exported: {why}; the run goes on, and `archie trace THREAD --otlp URL` sends it later"
        ));
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Arc<ExportedThread>>> {
        locked(&self.threads)
    }
}

impl SweptTrace {
    /// Returns whether the last run has ended since a command asked for the thread. One that had ended before may be about to
    /// be followed by another.
    fn is_over(&self) -> bool {
        if matches!(self.exported.source, TraceSource::Ended(_)) {
            return true;
        }
        let last = self.trace.as_trace().runs.last();
        let end = last.and_then(|run| run.end);
        end.is_some_and(|end| end >= *locked(&self.exported.added))
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for TraceExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceExport")
            .field("backends", &self.backends)
            .finish_non_exhaustive()
    }
}

/// Reads the trace of a thread, with its state if that is wanted.
pub async fn read_trace(thread: &dyn AnyThread, has_content: bool) -> Result<AgentTrace, String> {
    let trace = thread.trace().await;
    let mut trace =
        trace.map_err(|error| format!("thread `{}` cannot be read: {error}", thread.id()))?;
    if has_content {
        add_content(&mut trace, thread).await;
    }
    Ok(AgentTrace::from(trace))
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

/// Returns why LangSmith gets no traces: the exporter sends the headers of these variables to every backend, and those are the
/// keys of another one.
fn shared_keys(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_on = variable("LANGSMITH_TRACING").is_some_and(|value| is_on(&value));
    let names = [
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    ];
    let name = names
        .into_iter()
        .find(|name| is_on && variable(name).is_some())?;
    Some(format!(
        "LangSmith would also get the headers in `{name}`; unset this variable or `LANGSMITH_TRACING`"
    ))
}

/// Returns the backends that the environment names.
fn targets(variable: impl Fn(&str) -> Option<String>) -> Vec<Target> {
    let mut found = Vec::new();
    let is_set = |name: &str| variable(name).is_some_and(|value| is_on(&value));
    if is_set("LANGSMITH_TRACING") && shared_keys(&variable).is_none() {
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
const REGULAR: SweepKind = SweepKind {
    limit: Duration::from_secs(30),
    is_last: false,
};
/// A finished command waits for its last spans to arrive, but not for long.
const LAST: SweepKind = SweepKind {
    limit: Duration::from_secs(3),
    is_last: true,
};
/// Number of threads whose spans wait for a backend, before the oldest are given up.
const ENDED_MAX: usize = 1_000;
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

    #[test]
    fn langsmith_does_not_get_the_keys_of_another_backend() {
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h/own");
        for name in [
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        ] {
            let set = [own, ("LANGSMITH_TRACING", "1"), (name, "api-key=k")];
            assert_eq!(urls(&set), ["http://h/own"]);
            let why = shared_keys(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            assert!(why.is_some_and(|why| why.contains(name) && !why.contains("=k")));
        }
        assert_eq!(shared_keys(|_| None), None);
    }
}
