//! A trace as text for people: a tree with times.

use std::fmt;

use super::{Span, Trace, fields};

/// A trace as a tree of lines, with a note by the caller on each span.
pub struct TraceTree<'a, F> {
    trace: &'a Trace,
    note: F,
}

impl Trace {
    /// Renders the trace as `Display` does, with a note by the caller after the time of each span. Empty notes are left out.
    pub fn tree_with<F: Fn(&Span) -> String>(&self, note: F) -> TraceTree<'_, F> {
        TraceTree { trace: self, note }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.tree_with(|_| String::new()), f)
    }
}

impl<F: Fn(&Span) -> String> fmt::Display for TraceTree<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { thread, runs } = self.trace;
        writeln!(f, "{thread}")?;
        for (at, run) in runs.iter().enumerate() {
            self.branch(f, "", run, at + 1 == runs.len())?;
        }
        Ok(())
    }
}

impl<F: Fn(&Span) -> String> TraceTree<'_, F> {
    fn branch(
        &self,
        f: &mut fmt::Formatter<'_>,
        before: &str,
        span: &Span,
        is_last: bool,
    ) -> fmt::Result {
        let (turn, further) = match is_last {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        writeln!(f, "{before}{turn}{}", self.line(span))?;
        let before = format!("{before}{further}");
        for (at, inner) in span.inner.iter().enumerate() {
            self.branch(f, &before, inner, at + 1 == span.inner.len())?;
        }
        Ok(())
    }

    fn line(&self, span: &Span) -> String {
        let mut line = format!("{}  {}", span.name, took(span));
        let note = (self.note)(span);
        if !note.is_empty() {
            line.push_str(&format!("  {note}"));
        }
        if let Some(outcome) = span
            .fields
            .get(fields::OUTCOME)
            .and_then(|word| word.as_str())
            .filter(|_| span.error.is_none())
        {
            line.push_str(&format!("  {outcome}"));
        }
        if let Some(error) = &span.error {
            let first = error.lines().next().unwrap_or_default();
            line.push_str(&format!("  failed: {first}"));
        }
        line
    }
}

impl<F> fmt::Debug for TraceTree<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceTree")
            .field("trace", self.trace)
            .finish_non_exhaustive()
    }
}

fn took(span: &Span) -> String {
    let Some(end) = span.end else {
        return "goes on".to_owned();
    };
    let ms = end.0.saturating_sub(span.start.0).max(0);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}
