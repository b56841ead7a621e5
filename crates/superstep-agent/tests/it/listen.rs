//! Somebody who listens to everything that is told with `tracing`, at every level.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What was heard.
#[derive(Clone, Default)]
pub(crate) struct Ear(Arc<Inner>);

#[derive(Default)]
struct Inner {
    next: AtomicU64,
    heard: Mutex<Heard>,
}

#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) spans: Vec<HeardSpan>,
    /// Each with its fields, in one line.
    pub(crate) events: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct HeardSpan {
    pub(crate) id: u64,
    pub(crate) parent: Option<u64>,
    pub(crate) target: String,
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Ear {
    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap()
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        let heard = self.heard();
        format!("{:?}\n{}", heard.spans, heard.events.join("\n"))
    }

    /// Our own spans, as a tree of their names and what is known of them.
    pub(crate) fn tree(&self) -> String {
        let heard = self.heard();
        let mut drawn = String::new();
        draw(&heard.spans, None, 0, &mut drawn);
        drawn
    }
}

fn draw(spans: &[HeardSpan], parent: Option<u64>, depth: usize, drawn: &mut String) {
    let ours = |span: &&HeardSpan| span.parent == parent && span.target.starts_with("superstep");
    for span in spans.iter().filter(ours) {
        write!(drawn, "{:1$}{2}", "", depth * 2, span.name).unwrap();
        for (name, value) in &span.fields {
            write!(drawn, " {name}={value}").unwrap();
        }
        drawn.push('\n');
        draw(spans, Some(span.id), depth + 1, drawn);
    }
}

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

impl Subscriber for Ear {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.next.fetch_add(1, Ordering::SeqCst) + 1;
        let entered = ENTERED.with_borrow(|entered| entered.last().copied());
        let parent = span.parent().map(Id::into_u64);
        let mut fields = Fields(Vec::new());
        span.record(&mut fields);
        self.heard().spans.push(HeardSpan {
            id,
            parent: parent.or_else(|| span.is_contextual().then_some(entered)?),
            target: span.metadata().target().to_owned(),
            name: span.metadata().name(),
            fields: fields.0,
        });
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut fields = Fields(Vec::new());
        values.record(&mut fields);
        let mut heard = self.heard();
        let span = heard.spans.iter_mut().find(|span| span.id == id.into_u64());
        span.unwrap().fields.extend(fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(Vec::new());
        event.record(&mut fields);
        let line = format!("{} {:?}", event.metadata().target(), fields.0);
        self.heard().events.push(line);
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.into_u64()));
    }

    fn exit(&self, _: &Id) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}
