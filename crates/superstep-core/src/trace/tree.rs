//! A trace as people read it: a tree with times and costs.

use std::fmt;

use super::{Span, SpanKind, Trace, fields};

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.thread)?;
        for (at, run) in self.runs.iter().enumerate() {
            branch(f, "", run, at + 1 == self.runs.len())?;
        }
        Ok(())
    }
}

fn branch(f: &mut fmt::Formatter<'_>, before: &str, span: &Span, is_last: bool) -> fmt::Result {
    let (turn, further) = match is_last {
        true => ("└─ ", "   "),
        false => ("├─ ", "│  "),
    };
    writeln!(f, "{before}{turn}{}", line(span))?;
    let before = format!("{before}{further}");
    for (at, inner) in span.inner.iter().enumerate() {
        branch(f, &before, inner, at + 1 == span.inner.len())?;
    }
    Ok(())
}

fn line(span: &Span) -> String {
    let mut line = format!("{}  {}", span.name, took(span));
    let totals = Totals::of(span);
    if totals.calls > 0 {
        line.push_str(&format!("  {} in, {} out", totals.input, totals.output));
        let cost = match totals.unknown {
            0 => dollars(totals.nano_dollars),
            _ if totals.nano_dollars == 0 => "cost unknown".to_owned(),
            _ => format!("at least {}", dollars(totals.nano_dollars)),
        };
        line.push_str(&format!("  {cost}"));
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

fn dollars(nano: u64) -> String {
    format!(
        "${}.{:06}",
        nano / 1_000_000_000,
        nano % 1_000_000_000 / 1_000
    )
}

/// What the calls of models in a span took.
#[derive(Default)]
struct Totals {
    calls: u64,
    input: u64,
    output: u64,
    nano_dollars: u64,
    /// Calls whose cost nobody knows.
    unknown: u64,
}

impl Totals {
    fn of(span: &Span) -> Self {
        let mut totals = Self::default();
        totals.add(span);
        totals
    }

    fn add(&mut self, span: &Span) {
        if span.kind == SpanKind::Model {
            let number = |name: &str| span.fields.get(name).and_then(|value| value.as_u64());
            self.calls += 1;
            self.input += number(fields::INPUT_TOKENS).unwrap_or(0);
            self.output += number(fields::OUTPUT_TOKENS).unwrap_or(0);
            match number(fields::COST) {
                Some(nano) => self.nano_dollars += nano,
                None => self.unknown += 1,
            }
        }
        span.inner.iter().for_each(|inner| self.add(inner));
    }
}
