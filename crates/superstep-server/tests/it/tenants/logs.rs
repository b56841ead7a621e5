//! What a server writes to its logs, searched while it is written.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Looks for texts in the lines of a log. As a subscriber of `tracing`, it reads every event and every span, at every level.
#[derive(Clone)]
pub(super) struct LogSearch(Arc<Search>);

struct Search {
    texts: Vec<String>,
    lines: AtomicU64,
    /// Lines that must not be there.
    found: Mutex<Vec<String>>,
}

impl LogSearch {
    /// Creates a search for texts that no line may have.
    pub(super) fn for_texts(texts: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new(Search {
            texts: texts.into_iter().collect(),
            lines: AtomicU64::new(0),
            found: Mutex::default(),
        }))
    }

    /// Reads a line, and returns its number.
    pub(super) fn read(&self, line: &str) -> u64 {
        if self.0.texts.iter().any(|text| line.contains(text)) {
            self.report(line);
        }
        self.0.lines.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes a line that must not be there.
    pub(super) fn report(&self, line: &str) {
        self.0.found.lock().unwrap().push(line.to_owned());
    }

    /// Fails if a line has one of the texts, and if there is no line at all.
    #[track_caller]
    pub(super) fn assert_clean(&self) {
        assert_eq!(*self.0.found.lock().unwrap(), Vec::<String>::new());
        assert_ne!(self.0.lines.load(Ordering::Relaxed), 0, "nothing was read");
    }
}

/// The name of an event or a span, with its fields.
struct Line(String);

impl Line {
    fn of(metadata: &Metadata<'_>) -> Self {
        Self(format!("{} {}", metadata.target(), metadata.name()))
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for LogSearch {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line::of(span.metadata());
        span.record(&mut line);
        Id::from_u64(self.read(&line.0))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        self.read(&line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::of(event.metadata());
        event.record(&mut line);
        self.read(&line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_text_in_an_event_or_a_span_is_found() {
    let search = LogSearch::for_texts(["secret".to_owned()]);
    let listening = tracing::subscriber::set_default(search.clone());
    tracing::info!(topic = "tea", "harmless");
    assert_eq!(search.0.found.lock().unwrap().len(), 0);
    tracing::debug!(error = %"a secret text", "refused");
    let word = "secret";
    tracing::info!("a {word} message");
    let span = tracing::trace_span!("work", who = "secret-tenant", more = tracing::field::Empty);
    span.record("more", "nothing");
    span.record("more", "another secret");
    drop(listening);
    let found = search.0.found.lock().unwrap().clone();
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(search.0.lines.load(Ordering::Relaxed), 6);
}
