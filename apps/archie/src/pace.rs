//! The pace of a run's model calls, for the line with the spinner.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use archie_agent::printable::counted;

/// The model calls that are going on in a run.
#[derive(Debug, Default)]
pub(crate) struct RunPace {
    /// By the execution of the node that makes the call.
    calls: BTreeMap<u64, CallPace>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallPace {
    pub(crate) tokens: u64,
    /// Time since the first token.
    pub(crate) seconds: f64,
    pub(crate) tokens_max: Option<u32>,
    pub(crate) seen: Instant,
}

impl CallPace {
    /// Returns the tokens per second. `None` at the beginning.
    fn rate(&self) -> Option<f64> {
        let is_known = self.tokens > 1 && self.seconds > 0.0;
        is_known.then(|| (self.tokens - 1) as f64 / self.seconds)
    }

    /// Returns the longest time in which the answer reaches its limit at this pace.
    fn seconds_left_max(&self) -> Option<f64> {
        let left = u64::from(self.tokens_max?).saturating_sub(self.tokens);
        Some(left as f64 / self.rate()?)
    }
}

impl RunPace {
    /// Takes in news of a call and returns the text for the spinner.
    pub(crate) fn update(&mut self, execution: u64, call: CallPace) -> String {
        // The end of a call is not told.
        self.calls
            .retain(|_, other| call.seen.saturating_duration_since(other.seen) < IS_OVER);
        self.calls.insert(execution, call);
        let tokens: u64 = self.calls.values().map(|call| call.tokens).sum();
        let tokens = counted(usize::try_from(tokens).unwrap_or(usize::MAX), "token");
        let mut text = match self.calls.len() {
            1 => format!("writing the answer · {tokens}"),
            calls => format!("writing {calls} answers at once · {tokens}"),
        };
        let rates: Option<f64> = self.calls.values().map(CallPace::rate).sum();
        if let Some(rate) = rates {
            text.push_str(&format!(" · {rate:.1}/s"));
        }
        let left = self.calls.values().map(CallPace::seconds_left_max);
        let longest = left.collect::<Option<Vec<_>>>();
        if let Some(longest) = longest.and_then(|left| left.into_iter().reduce(f64::max)) {
            text.push_str(&format!(" · at most {} more", rough_time(longest)));
        }
        text
    }
}

/// Writes a time as people say it.
fn rough_time(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}

/// A call without news for so long has ended, or is so slow that it does not add to the pace.
const IS_OVER: Duration = Duration::from_secs(15);

#[test]
fn a_call_tells_its_tokens_its_pace_and_how_long_it_may_still_take() {
    let mut pace = RunPace::default();
    let mut call = CallPace {
        tokens: 1,
        seconds: 0.0,
        tokens_max: Some(512),
        seen: Instant::now(),
    };
    assert_eq!(pace.update(7, call), "writing the answer · 1 token");
    (call.tokens, call.seconds) = (31, 10.0);
    assert_eq!(
        pace.update(7, call),
        "writing the answer · 31 tokens · 3.0/s · at most 3 min more"
    );
}

#[test]
fn calls_at_once_are_added_until_they_have_ended() {
    let mut pace = RunPace::default();
    let mut call = CallPace {
        tokens: 11,
        seconds: 10.0,
        tokens_max: None,
        seen: Instant::now(),
    };
    pace.update(1, call);
    assert_eq!(
        pace.update(2, call),
        "writing 2 answers at once · 22 tokens · 2.0/s"
    );
    call.seen += Duration::from_secs(20);
    assert_eq!(
        pace.update(2, call),
        "writing the answer · 11 tokens · 1.0/s"
    );
}
