//! When mails are taken in again.

use std::time::Duration;

use archie_agent::Terminal;
use archie_agent::clock::seconds;
use archie_email_assistant::NAME;

use crate::app::App;

/// When mails were last taken in from a mailbox. In the store, so that it outlives the process.
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

    /// How long until the next time. One that was missed while nobody ran is made up for at once.
    pub(super) fn wait(&self, every: Duration) -> Duration {
        // The store knows seconds.
        let every = every.as_secs().max(1);
        let next = self.last_run.saturating_add(every);
        Duration::from_secs(next.saturating_sub(seconds()).min(every))
    }

    /// Silence would look like an empty mailbox.
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
                "nobody looked for {} minutes",
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

/// Where timers are kept.
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
