//! Two to eight processes answer one question at the same moment, and contradict each other: one wins.

use anyhow::Context;
use serde_json::{Value as Json, json};

use super::child::Process;
use super::lab::{Lab, inspect};
use super::tally::Tally;
use super::{Found, Plan};
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut lab = Lab::new(plan)?;
    let store = lab.fresh_place("race")?.store;
    let mut race = Race {
        keeper: lab.server(&store, None)?,
        racers: (0..RACERS)
            .map(|_| lab.server(&store, plan.mutant.as_deref()))
            .collect::<Result<_, _>>()?,
        lab,
        tally: Tally::new("race", plan.trials, KINDS),
        answers: 0,
    };
    for trial in 0..plan.trials {
        race.trial(trial, &mut Prng::of_trial(plan.seed, trial))
            .with_context(|| format!("trial {trial}"))?;
        race.tally.progress(trial + 1);
    }
    Ok(Found {
        violations: race.tally.violations(),
        detail: race.tally.detail(json!({ "answers": race.answers })),
    })
}

struct Race {
    lab: Lab,
    /// Starts threads and looks at them, and answers none.
    keeper: Process,
    racers: Vec<Process>,
    tally: Tally,
    answers: u64,
}

impl Race {
    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let thread = format!("race-{trial}");
        self.keeper.tell(&format!("start {thread}"))?;
        let paused = self.keeper.line()?;
        let interrupt = paused
            .strip_prefix("paused ")
            .context("the thread did not pause")?;

        let mut order: Vec<usize> = (0..RACERS).collect();
        prng.shuffle(&mut order);
        order.truncate(usize::try_from(2 + prng.below(RACERS as u64 - 1))?);
        self.answers += order.len() as u64;
        let told = self.answer_at_once(&thread, interrupt, &order)?;
        self.judge(trial, &thread, &told)
    }

    /// Every racer is ready before the first is let go. Gives each answer with what its giver was told.
    fn answer_at_once(
        &mut self,
        thread: &str,
        interrupt: &str,
        order: &[usize],
    ) -> anyhow::Result<Vec<(usize, String)>> {
        for &racer in order {
            self.racers[racer].tell(&format!("answer {thread} {interrupt} {racer}"))?;
        }
        for &racer in order {
            self.racers[racer].line()?;
        }
        for &racer in order {
            self.racers[racer].tell("go")?;
        }
        order
            .iter()
            .map(|&racer| Ok((racer, self.racers[racer].line()?)))
            .collect()
    }

    fn judge(&mut self, trial: u64, thread: &str, told: &[(usize, String)]) -> anyhow::Result<()> {
        let won = |line: &str| line.starts_with("won");
        let winners: Vec<usize> = told
            .iter()
            .filter(|(_, line)| won(line))
            .map(|(racer, _)| *racer)
            .collect();
        if winners.len() != 1 {
            self.tally.violation("winners", trial, format!("{told:?}"));
        }
        for (racer, line) in told {
            if !won(line) && line != "lost checkpoint-not-open" {
                self.tally
                    .violation("not_told", trial, format!("racer {racer}: {line}"));
            }
        }
        let effects: Vec<u64> = self
            .lab
            .ledger
            .news()?
            .iter()
            .filter(|line| line.thread == thread && line.phase == "start")
            .map(|line| line.detail)
            .collect();
        if effects.len() != 1 {
            self.tally
                .violation("effects", trial, format!("{effects:?}"));
        }
        let stored = inspect(&mut self.keeper, "question", thread)?;
        let expected = effects.first().copied();
        let state = &stored["state"];
        let agrees = expected.is_some_and(|answer| {
            winners.iter().any(|winner| *winner as u64 == answer)
                && state["answer"] == answer
                && state["acted_on"] == answer
        });
        if !agrees || stored["fault"] != Json::Null {
            self.tally.violation(
                "state",
                trial,
                format!("{stored}, winners {winners:?}, effects {effects:?}"),
            );
        }
        Ok(())
    }
}

const RACERS: usize = 8;
const KINDS: &[&str] = &["winners", "not_told", "effects", "state"];
