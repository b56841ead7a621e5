//! Interval timer of `archie mail ingest --every`.

use std::time::Duration;

use archie_agent::Terminal;
use archie_agent::clock::seconds;
use archie_email_assistant::NAME;

use crate::app::App;

/// Times of the last ingest of a mailbox, in Unix seconds. Stored in the long-term store, so that they outlive the process.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(super) struct Timer {
    last_run: u64,
    last_success: u64,
    failures: u64,
}

impl Timer {
    pub(super) async fn of(app: &App, source: &str) -> anyhow::Result<Self> {
        app.recall(KEPT, source).await
    }

    /// Returns the time until the next ingest; zero if one was missed.
    pub(super) fn wait(&self, every: Duration) -> Duration {
        // The store has a resolution of seconds.
        let every = every.as_secs().max(1);
        let next = self.last_run.saturating_add(every);
        Duration::from_secs(next.saturating_sub(seconds()).min(every))
    }

    /// Prints earlier failures and missed runs. Without this, a failing mailbox would look like an empty one.
    pub(super) fn tell(&self, every: Duration, terminal: &dyn Terminal) {
        if self.failures > 0 {
            let since = match self.last_success {
                0 => "it never worked".to_owned(),
                at => format!(
                    "it last worked {} minutes ago",
                    seconds().saturating_sub(at) / 60
                ),
            };
            terminal.aside(&format!(
                "it failed {} times in a row; {since}",
                self.failures
            ));
        }
        let late = seconds().saturating_sub(self.last_run.saturating_add(every.as_secs()));
        if self.last_run > 0 && late > every.as_secs() {
            terminal.aside(&format!(
                "the mail was not checked for {} minutes",
                (late + every.as_secs()) / 60
            ));
        }
    }

    pub(super) async fn ran(
        &self,
        app: &App,
        source: &str,
        is_success: bool,
    ) -> anyhow::Result<()> {
        let ran = Self {
            last_run: seconds(),
            last_success: if is_success {
                seconds()
            } else {
                self.last_success
            },
            failures: if is_success { 0 } else { self.failures + 1 },
        };
        app.keep(KEPT, source, &ran).await
    }
}

/// Namespace of the timers in the long-term store.
const KEPT: [&str; 2] = [NAME, "timers"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_makes_up_for_what_was_missed_and_never_waits_longer_than_its_interval() {
        let every = Duration::from_secs(600);
        assert_eq!(Timer::default().wait(every), Duration::ZERO);
        let just_now = Timer {
            last_run: seconds(),
            ..Timer::default()
        };
        assert!(just_now.wait(every) > Duration::from_secs(590));
        let clock_went_back = Timer {
            last_run: seconds() + 1_000_000,
            ..Timer::default()
        };
        assert!(clock_went_back.wait(every) <= every);
    }
}
