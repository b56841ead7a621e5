//! Exports the traces of threads to an OTLP backend over HTTP (OpenTelemetry).
//!
//! The exporter reads the log instead of collecting spans while a run is in progress. So a killed process loses nothing, a
//! run that paused for a week is one trace, and sending a trace twice sends the same spans with the same ids: a trace has the
//! id of its run, and every span the id that it has in [`superstep_core::trace`].
//!
//! The attributes are those of OpenTelemetry's conventions for generative AI, plus those that
//!
//! - Phoenix reads: `openinference.span.kind` and `session.id`
//!   (<https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md>);
//! - LangSmith reads: `langsmith.span.kind`, `langsmith.trace.session_id` and `langsmith.metadata.thread_id`
//!   (<https://docs.langchain.com/langsmith/trace-with-opentelemetry>, "Supported OpenTelemetry attribute mapping", and
//!   <https://docs.langchain.com/langsmith/threads>, which requires the thread on every span).
//!
//! Never sends text of a person, a model or a tool, except error texts if [`OtlpBuilder::error_texts`] is set.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    SpanContext, SpanId as OtelSpanId, SpanKind as OtelKind, Status, TraceFlags,
    TraceId as OtelTraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use serde_json::Value as Json;
use superstep_core::Timestamp;
use superstep_core::trace::{Span, SpanKind, Trace, TraceId};
use superstep_llm::Secret;

use crate::trace::{MODEL, TOOL, fields, spans};

/// A backend that receives traces. Requires a tokio runtime.
///
/// ```no_run
/// use superstep_agent::otlp::Otlp;
/// use superstep_llm::Secret;
///
/// # async fn example(trace: superstep_core::trace::Trace) -> Result<(), Box<dyn std::error::Error>> {
/// let phoenix = Otlp::to("http://127.0.0.1:6006/v1/traces").project("support").build()?;
/// phoenix.send(&trace).await?;
///
/// let langsmith = Otlp::to("https://api.smith.langchain.com/otel/v1/traces")
///     .header("x-api-key", Secret::from_env("LANGSMITH_API_KEY").ok_or("no key")?)
///     .header("Langsmith-Project", Secret::new("support"))
///     .build()?;
/// langsmith.send(&trace).await?;
/// # Ok(())
/// # }
/// ```
pub struct Otlp {
    exporter: SpanExporter,
    url: String,
    error_texts: bool,
}

/// Builder of an [`Otlp`] backend.
#[expect(missing_debug_implementations, reason = "it holds secrets")]
pub struct OtlpBuilder {
    url: String,
    headers: Vec<(String, Secret)>,
    resource: Vec<KeyValue>,
    error_texts: bool,
}

/// Which spans of a thread a backend has received, for [`Otlp::send_new`].
#[derive(Debug, Clone)]
pub struct SentSpans {
    since: SystemTime,
    spans: HashSet<(OtelTraceId, OtelSpanId)>,
}

impl SentSpans {
    /// Counts every span that ended before this time as sent.
    pub fn since(time: Timestamp) -> Self {
        Self {
            since: self::time(time),
            spans: HashSet::new(),
        }
    }

    fn has(&self, span: &SpanData) -> bool {
        span.end_time < self.since || self.spans.contains(&Self::id(span))
    }

    fn id(span: &SpanData) -> (OtelTraceId, OtelSpanId) {
        (span.span_context.trace_id(), span.span_context.span_id())
    }
}

/// Error from building an exporter or sending a trace.
#[derive(Debug, thiserror::Error)]
#[error("the trace was not sent to `{url}`: {why}")]
#[non_exhaustive]
pub struct OtlpError {
    /// Address of the backend.
    pub url: String,
    /// What failed. Contains no header values.
    pub why: String,
}

impl Otlp {
    /// Returns a builder for the endpoint at this URL, with its full path (such as `/v1/traces`).
    pub fn to(url: impl Into<String>) -> OtlpBuilder {
        let name = KeyValue::new("service.name", "superstep");
        OtlpBuilder {
            url: url.into(),
            headers: Vec::new(),
            resource: vec![name],
            error_texts: false,
        }
    }

    /// Sends every finished span of a thread. Returns how many there were.
    ///
    /// The span of a run is sent once the run has ended; spans inside it may be sent earlier.
    pub async fn send(&self, trace: &Trace) -> Result<usize, OtlpError> {
        let spans = self.spans(trace);
        let count = spans.len();
        for part in spans.chunks(SPANS_AT_ONCE) {
            let sent = self.exporter.export(part.to_vec()).await;
            sent.map_err(|error| OtlpError {
                url: self.url.clone(),
                why: error.to_string(),
            })?;
        }
        Ok(count)
    }

    /// Sends the finished spans of a thread that were not sent before, and notes them in `sent`. Returns how many there were.
    ///
    /// Call it again and again while a run goes on. What could not be sent is sent by the next call.
    pub async fn send_new(&self, trace: &Trace, sent: &mut SentSpans) -> Result<usize, OtlpError> {
        let mut spans = self.spans(trace);
        spans.retain(|span| !sent.has(span));
        let count = spans.len();
        for part in spans.chunks(SPANS_AT_ONCE) {
            let exported = self.exporter.export(part.to_vec()).await;
            exported.map_err(|error| OtlpError {
                url: self.url.clone(),
                why: error.to_string(),
            })?;
            sent.spans.extend(part.iter().map(SentSpans::id));
        }
        Ok(count)
    }

    fn spans(&self, trace: &Trace) -> Vec<SpanData> {
        let mut gathering = Gathering {
            thread: &trace.thread,
            error_texts: self.error_texts,
            spans: Vec::new(),
        };
        for run in &trace.runs {
            if let Some(id) = run.trace() {
                let parent = run.caller().map_or(OtelSpanId::INVALID, |caller| {
                    OtelSpanId::from(caller.span.0)
                });
                gathering.add(id, parent, run);
            }
        }
        gathering.spans
    }
}

impl OtlpBuilder {
    /// Adds a header to every request, such as an API key.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Sets the project that Phoenix shows the traces in.
    #[must_use]
    pub fn project(self, name: impl Into<String>) -> Self {
        self.resource("openinference.project.name", name)
    }

    /// Sets the service name. Default: `superstep`.
    #[must_use]
    pub fn service(self, name: impl Into<String>) -> Self {
        self.resource("service.name", name)
    }

    /// Adds a resource attribute, which describes the sender.
    #[must_use]
    pub fn resource(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.resource.push(KeyValue::new(name, value.into()));
        self
    }

    /// Also sends error texts. They may contain anything that a tool or a server returned. Default: not sent.
    #[must_use]
    pub fn error_texts(mut self) -> Self {
        self.error_texts = true;
        self
    }

    /// Builds the backend. Does not connect yet.
    pub fn build(self) -> Result<Otlp, OtlpError> {
        let headers: HashMap<_, _> = (self.headers.iter())
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        let built = SpanExporter::builder()
            .with_http()
            .with_endpoint(&self.url)
            .with_headers(headers)
            .with_timeout(TIMEOUT)
            .build();
        let mut exporter = built.map_err(|error| OtlpError {
            url: self.url.clone(),
            why: error.to_string(),
        })?;
        let resource = Resource::builder_empty().with_attributes(self.resource);
        exporter.set_resource(&resource.build());
        Ok(Otlp {
            exporter,
            url: self.url,
            error_texts: self.error_texts,
        })
    }
}

struct Gathering<'a> {
    thread: &'a str,
    error_texts: bool,
    spans: Vec<SpanData>,
}

impl Gathering<'_> {
    fn add(&mut self, trace: TraceId, parent: OtelSpanId, span: &Span) {
        let id = OtelSpanId::from(span.id.0);
        for inner in &span.inner {
            self.add(trace, id, inner);
        }
        // An open span is left out until it has ended: a span is exported only once complete.
        let Some(end) = span.end else {
            return;
        };
        self.spans.push(SpanData {
            span_context: SpanContext::new(
                OtelTraceId::from(trace.0),
                id,
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: parent,
            parent_span_is_remote: span.kind == SpanKind::Run && parent != OtelSpanId::INVALID,
            span_kind: match span.kind.is_call(MODEL.as_str()) {
                true => OtelKind::Client,
                false => OtelKind::Internal,
            },
            name: Cow::Owned(span.name.clone()),
            start_time: time(span.start),
            end_time: time(end),
            attributes: self.attributes(span),
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: self.status(span),
            instrumentation_scope: InstrumentationScope::builder("superstep")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        });
    }

    fn attributes(&self, span: &Span) -> Vec<KeyValue> {
        let (phoenix, langsmith) = match &span.kind {
            SpanKind::Run => ("AGENT", "chain"),
            SpanKind::Call(kind) if *kind == MODEL => ("LLM", "llm"),
            SpanKind::Call(kind) if *kind == TOOL => ("TOOL", "tool"),
            SpanKind::Call(_) | SpanKind::Superstep | SpanKind::Node | SpanKind::Wait => {
                ("CHAIN", "chain")
            }
        };
        // The engine does not name the operation of a run; calls got theirs when they were recorded.
        let operation = (span.kind == SpanKind::Run)
            .then(|| KeyValue::new(fields::OPERATION, spans::RUN))
            .filter(|_| !span.fields.contains_key(fields::OPERATION));
        let known = (span.fields.iter())
            .filter(|(name, _)| *name != fields::CONVERSATION)
            .filter_map(|(name, known)| Some(KeyValue::new(name.clone(), value(known)?)));
        let thread = self.thread.to_owned();
        let shared = [
            (fields::OPENINFERENCE_KIND, phoenix.to_owned()),
            (fields::LANGSMITH_KIND, langsmith.to_owned()),
            (fields::SESSION, thread.clone()),
            (fields::LANGSMITH_SESSION, thread.clone()),
            (fields::LANGSMITH_THREAD, thread.clone()),
            (fields::CONVERSATION, thread),
        ];
        let shared = shared.map(|(name, value)| KeyValue::new(name, value));
        operation.into_iter().chain(known).chain(shared).collect()
    }

    fn status(&self, span: &Span) -> Status {
        match &span.error {
            Some(error) if self.error_texts => Status::error(error.clone()),
            Some(_) => Status::error(""),
            None => Status::Ok,
        }
    }
}

fn value(json: &Json) -> Option<Value> {
    Some(match json {
        Json::String(text) => Value::from(text.clone()),
        Json::Bool(is) => Value::from(*is),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64()?),
        },
        Json::Array(items) => {
            let texts = items.iter().filter_map(Json::as_str);
            let texts = texts.map(|text| StringValue::from(text.to_owned()));
            Value::Array(Array::String(texts.collect()))
        }
        Json::Null | Json::Object(_) => return None,
    })
}

fn time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Backends refuse requests that are too large.
const SPANS_AT_ONCE: usize = 500;

const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use superstep_core::trace::SpanId;
    use superstep_core::trace::fields::RUN;

    use super::*;

    fn span(id: u64, kind: SpanKind, end: Option<i64>, known: Json, inner: Vec<Span>) -> Span {
        Span {
            id: SpanId(id),
            name: kind.as_str().to_owned(),
            kind,
            start: Timestamp(1_000),
            end: end.map(Timestamp),
            error: None,
            fields: known.as_object().cloned().unwrap_or_else(Map::new),
            inner,
        }
    }

    fn shop(end: Option<i64>) -> Trace {
        let tokens = json!({ fields::INPUT_TOKENS: 100, fields::FINISH: ["stop"] });
        let model = span(4, SpanKind::Call(MODEL), Some(1_500), tokens, Vec::new());
        let mut tool = span(5, SpanKind::Call(TOOL), Some(1_700), json!({}), Vec::new());
        tool.error = Some("no customer Jane".to_owned());
        let node = span(3, SpanKind::Node, end, json!({}), vec![model, tool]);
        let run = json!({ RUN: format!("{:032x}", 0xabc) });
        let run = span(1, SpanKind::Run, end, run, vec![node]);
        Trace {
            thread: "customer-7".to_owned(),
            runs: vec![run],
        }
    }

    /// Name, id, parent, kinds for Phoenix and LangSmith, status and operation of each span.
    fn told(otlp: &Otlp, trace: &Trace) -> Vec<String> {
        let attribute = |span: &SpanData, name: &str| {
            let found = span
                .attributes
                .iter()
                .find(|known| known.key.as_str() == name);
            found.map_or("-".to_owned(), |known| known.value.to_string())
        };
        let spans = otlp.spans(trace);
        let line = |span: &SpanData| {
            assert_eq!(span.span_context.trace_id(), OtelTraceId::from(0xabc_u128));
            assert_eq!(attribute(span, fields::SESSION), "customer-7");
            assert_eq!(attribute(span, fields::LANGSMITH_THREAD), "customer-7");
            format!(
                "{} {:x} in {:x} {} {} {:?} {}",
                span.name,
                span.span_context.span_id(),
                span.parent_span_id,
                attribute(span, fields::OPENINFERENCE_KIND),
                attribute(span, fields::LANGSMITH_KIND),
                span.status,
                attribute(span, fields::OPERATION)
            )
        };
        spans.iter().map(line).collect()
    }

    fn otlp() -> OtlpBuilder {
        Otlp::to("http://127.0.0.1:9/v1/traces")
    }

    #[test]
    fn spans_have_their_parents_and_kinds_and_no_words_of_tools() {
        let told = told(&otlp().build().unwrap(), &shop(Some(2_000)));
        insta::assert_snapshot!(told.join("\n"), @r#"
        model 4 in 3 LLM llm Ok -
        tool 5 in 3 TOOL tool Error { description: "" } -
        node 3 in 1 CHAIN chain Ok -
        run 1 in 0 AGENT chain Ok invoke_agent
        "#);
    }

    #[test]
    fn texts_of_errors_are_sent_when_that_is_asked_for() {
        let otlp = otlp().error_texts().build().unwrap();
        assert!(told(&otlp, &shop(Some(2_000)))[1].contains("Jane"));
    }

    #[test]
    fn what_goes_on_is_left_for_later() {
        let told = told(&otlp().build().unwrap(), &shop(None));
        let names: Vec<_> = told
            .iter()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(names, ["model", "tool"]);
    }

    #[tokio::test]
    async fn nobody_there_is_an_error_that_shows_no_header() {
        let otlp = otlp()
            .header("x-api-key", Secret::new("sk-planted"))
            .build();
        let error = otlp.unwrap().send(&shop(Some(2_000))).await.unwrap_err();
        assert!(error.to_string().contains("127.0.0.1:9"), "{error}");
        assert!(!format!("{error} {error:?}").contains("planted"));
    }
}
