//! Every effect that nodes have, counted and never deduplicated.

use std::collections::BTreeMap;

use superstep_core::TaskId;

use super::check::{Check, Violation};

/// One execution of one attempt of a task, in one process.
pub(super) type ExecId = u64;

/// What the outside world saw.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    effects: BTreeMap<(TaskId, String), Effect>,
    pub(super) executions: u64,
    pub(super) repeated: u64,
}

#[derive(Debug, Default)]
struct Effect {
    /// By owners of the thread.
    executions: u32,
    /// How often an execution was cut before its record was acknowledged.
    excuses: u32,
    /// Which execution was acknowledged.
    acked: Option<u64>,
    in_flight: Vec<ExecId>,
    key: String,
}

/// Who has an effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Actor {
    pub(super) exec: ExecId,
    /// Whether its process owns the thread and has not given the task up.
    pub(super) owns: bool,
}

impl Ledger {
    /// An effect happens. Gives the number of this execution.
    pub(super) fn execute(
        &mut self,
        actor: Actor,
        place: (TaskId, &str),
        key: String,
        stateless: bool,
    ) -> (u64, Vec<Violation>) {
        self.executions += 1;
        let number = self.executions;
        let effect = self
            .effects
            .entry((place.0, place.1.to_owned()))
            .or_default();
        let mut found = Vec::new();
        if !effect.key.is_empty() && effect.key != key {
            found.push(Violation::new(
                Check::EffectOnce,
                format!("the key of effect {place:?} changed"),
            ));
        }
        effect.key = key;
        if !actor.owns {
            // A call already on the wire: fencing stops its commit, not the call.
            self.repeated += 1;
            return (number, found);
        }
        effect.executions += 1;
        effect.in_flight.push(actor.exec);
        self.repeated += u64::from(effect.executions > 1);
        // Nothing of a stateless subgraph is stored: a crash starts it again.
        if effect.acked.is_some() && !stateless {
            found.push(Violation::new(
                Check::EffectOnce,
                format!("effect {place:?} was acknowledged and runs again"),
            ));
        } else if effect.executions > 1 + effect.excuses && !stateless {
            found.push(Violation::new(
                Check::EffectOnce,
                format!("effect {place:?} runs again and nothing had cut it"),
            ));
        }
        (number, found)
    }

    /// The node went on with this execution's result.
    pub(super) fn used(
        &mut self,
        actor: Actor,
        place: (TaskId, &str),
        number: u64,
        stateless: bool,
    ) -> Option<Violation> {
        let effect = self
            .effects
            .entry((place.0, place.1.to_owned()))
            .or_default();
        effect.in_flight.retain(|exec| *exec != actor.exec);
        let acked = *effect.acked.get_or_insert(number);
        if acked == number {
            return None;
        }
        if stateless {
            effect.acked = Some(number);
            return None;
        }
        Some(Violation::new(
            Check::FirstWrite,
            format!(
                "the result of effect {place:?} was that of execution {acked}, and is that of {number} now"
            ),
        ))
    }

    /// Somebody else has the thread now: whatever was in flight is cut, whether its process knows or not.
    pub(super) fn taken_over(&mut self) {
        for effect in self.effects.values_mut() {
            effect.excuses += effect.in_flight.len() as u32;
            effect.in_flight.clear();
        }
    }

    /// An execution was dropped, with whatever it had in flight.
    pub(super) fn dropped(&mut self, exec: ExecId) {
        for effect in self.effects.values_mut() {
            let before = effect.in_flight.len();
            effect.in_flight.retain(|flying| *flying != exec);
            effect.excuses += (before - effect.in_flight.len()) as u32;
        }
    }
}
