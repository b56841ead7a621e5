//! The answers of a scenario, which interrupt each of them is for, and what is wrong with a script.

use std::fmt;
use std::time::Duration;

use serde_json::Value as Json;
use superstep_core::Timestamp;
use superstep_core::checkpoint::format::{InterruptRecord, OnDeadline};
use superstep_core::run::OpenInterrupt;

use crate::drive::DriveError;

/// What people answer.
#[derive(Default)]
pub(super) struct Script {
    /// Each is used once, in order.
    pub(super) once: Vec<ScriptedAnswer>,
    /// For interrupts that none of those is for.
    pub(super) standing: Vec<StandingAnswer>,
}

pub(super) struct ScriptedAnswer {
    /// Key or kind of the interrupt.
    pub(super) name: String,
    pub(super) reply: Reply,
}

pub(super) enum Reply {
    /// The answer, and how long after the question.
    Answer(Json, Duration),
    /// None in time.
    Expire,
}

pub(super) struct StandingAnswer {
    pub(super) name: String,
    pub(super) answer: Box<dyn Fn(&InterruptRecord) -> Json + Send + Sync>,
}

/// What happens to an open interrupt next, and when.
pub(super) enum Due {
    Answer(Json, Timestamp),
    Deadline(Timestamp),
}

impl Due {
    pub(super) fn at(&self) -> Timestamp {
        let (Due::Answer(_, at) | Due::Deadline(at)) = self;
        *at
    }
}

impl Script {
    /// Which answer each interrupt uses: those of the thread so far, in the order in which they were raised. This depends on
    /// nothing else, so a process that continues after a kill comes to the same.
    fn assigned(&self, interrupts: &[OpenInterrupt]) -> Vec<Option<usize>> {
        let mut is_used = vec![false; self.once.len()];
        let mut next = |record: &InterruptRecord| {
            let unused = (self.once.iter().enumerate())
                .find(|(at, scripted)| !is_used[*at] && is_for(&scripted.name, record))?;
            is_used[unused.0] = true;
            Some(unused.0)
        };
        interrupts
            .iter()
            .map(|raised| next(&raised.interrupt))
            .collect()
    }

    /// What happens next: to the interrupt at this position in the list.
    pub(super) fn next(
        &self,
        interrupts: &[OpenInterrupt],
    ) -> Result<Option<(usize, Due)>, ScenarioError> {
        let mut next: Option<(usize, Due)> = None;
        let assigned = self.assigned(interrupts);
        for (at, raised) in interrupts.iter().enumerate() {
            if !raised.row.is_open() {
                continue;
            }
            let due = self.due(raised, assigned[at])?;
            if next.as_ref().is_none_or(|(_, first)| due.at() < first.at()) {
                next = Some((at, due));
            }
        }
        Ok(next)
    }

    fn due(&self, raised: &OpenInterrupt, scripted: Option<usize>) -> Result<Due, ScenarioError> {
        let OpenInterrupt { interrupt, row } = raised;
        let deadline = match interrupt.on_deadline {
            OnDeadline::Wait => None,
            OnDeadline::Answer(_) | OnDeadline::Fail => interrupt.deadline,
        };
        let (answer, after) = match scripted.map(|at| &self.once[at].reply) {
            Some(Reply::Answer(answer, after)) => (answer.clone(), *after),
            Some(Reply::Expire) => {
                let never = || ScenarioError::NeverExpires {
                    key: interrupt.key.clone(),
                };
                return Ok(Due::Deadline(deadline.ok_or_else(never)?));
            }
            None => {
                let mut standing = self.standing.iter();
                let standing = standing.find(|standing| is_for(&standing.name, interrupt));
                let standing = standing.ok_or_else(|| ScenarioError::unanswered(interrupt))?;
                ((standing.answer)(interrupt), Duration::ZERO)
            }
        };
        let at = match u64::try_from(after.as_millis()).unwrap_or(u64::MAX) {
            0 => AT_ONCE,
            after => row.asked_at.plus_ms(after),
        };
        Ok(match deadline {
            Some(deadline) if deadline <= at => Due::Deadline(deadline),
            _ => Due::Answer(answer, at),
        })
    }

    /// Names of the answers that no interrupt has used.
    pub(super) fn unused(&self, interrupts: &[OpenInterrupt]) -> Vec<String> {
        let assigned = self.assigned(interrupts);
        let all = self.once.iter().enumerate();
        all.filter(|(at, _)| !assigned.contains(&Some(*at)))
            .map(|(_, scripted)| scripted.name.clone())
            .collect()
    }
}

fn is_for(name: &str, interrupt: &InterruptRecord) -> bool {
    name == interrupt.key || name == interrupt.kind
}

/// A scenario that did not go as its script says. `Debug` prints the same text as `Display`, so that `unwrap` shows it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The scenario has no input.
    #[error("the scenario has no input; give it one with `start`")]
    NoInput,
    /// A node asked for something that the script does not answer.
    #[error(
        "`{node}` asked `{key}` (kind `{kind}`): {request}; the script has no answer left for it, add `.answer(\"{key}\", ..)`"
    )]
    Unanswered {
        /// Node that asked.
        node: String,
        /// Key of the interrupt.
        key: String,
        /// Kind of the interrupt.
        kind: String,
        /// What it asked, as JSON.
        request: String,
    },
    /// The script has answers that nothing asked for.
    #[error("the script answers {}, which no node asked; the last run: {outcome}", quoted(.answers))]
    NotAsked {
        /// Names in the script.
        answers: Vec<String>,
        /// How the last run stopped.
        outcome: String,
    },
    /// The script lets an interrupt expire that has no deadline, or stays open after it.
    #[error(
        "the script lets `{key}` expire, but it has no deadline that answers it; set one with `within` and `or_answer` or `or_fail`"
    )]
    NeverExpires {
        /// Key of the interrupt.
        key: String,
    },
    /// The runtime reported an error.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

impl ScenarioError {
    fn unanswered(interrupt: &InterruptRecord) -> Self {
        let request = interrupt.request.decode::<Json>().unwrap_or_default();
        Self::Unanswered {
            node: interrupt.node.to_string(),
            key: interrupt.key.clone(),
            kind: interrupt.kind.clone(),
            request: request.to_string(),
        }
    }
}

impl fmt::Debug for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Before anything: the process that raised an interrupt may have had a clock that was ahead.
const AT_ONCE: Timestamp = Timestamp(i64::MIN);
