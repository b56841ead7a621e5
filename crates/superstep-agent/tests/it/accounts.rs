//! The arithmetic of one account, against a naive model, and its stored form.
//!
//! Accounts in a store, with races and crashes, are the clauses in `budget.rs`.

use superstep_agent::budget::{Account, Amounts, CallKey, Limits, Meter, Over};
use superstep_conformance::Prng;
use superstep_core::Timestamp;

const NOW: Timestamp = Timestamp(1_000);

fn key(n: usize) -> CallKey {
    CallKey::new(&format!("call-{n}")).unwrap()
}

/// What is done to an account. The mutants do one thing otherwise.
trait Ledger {
    fn reserve(&mut self, limits: &Limits, key: &CallKey, estimate: &Amounts) -> Result<(), Over>;
    fn settle(&mut self, key: &CallKey, actual: &Amounts);
    fn release(&mut self, key: &CallKey);
    fn account(&self) -> &Account;
}

#[derive(Default)]
struct Sound(Account);

impl Ledger for Sound {
    fn reserve(&mut self, limits: &Limits, key: &CallKey, estimate: &Amounts) -> Result<(), Over> {
        self.0.reserve(limits, key, estimate, NOW)
    }
    fn settle(&mut self, key: &CallKey, actual: &Amounts) {
        self.0.settle(key, actual, NOW);
    }
    fn release(&mut self, key: &CallKey) {
        self.0.release(key);
    }
    fn account(&self) -> &Account {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mutant {
    /// A call that is made again takes the place of the one that was never settled.
    ForgetsUnsettled,
    /// What is reserved is not counted.
    ChecksSpentOnly,
    /// Settles once more what was settled.
    SettlesTwice,
    /// A call that cost more is settled for what was reserved.
    CapsAtEstimate,
    /// What is settled stays reserved.
    KeepsReservation,
}

struct Broken(Account, Mutant);

impl Ledger for Broken {
    fn reserve(&mut self, limits: &Limits, key: &CallKey, estimate: &Amounts) -> Result<(), Over> {
        match self.1 {
            Mutant::ForgetsUnsettled => {
                self.0.release(key);
            }
            Mutant::ChecksSpentOnly => {
                let mut alone = Account::default();
                let spent = self.0.spent().clone();
                alone.reserve(&Limits::NONE, &self::key(99), &spent, NOW)?;
                alone.reserve(limits, key, estimate, NOW)?;
                return self.0.reserve(&Limits::NONE, key, estimate, NOW);
            }
            _ => {}
        }
        self.0.reserve(limits, key, estimate, NOW)
    }
    fn settle(&mut self, key: &CallKey, actual: &Amounts) {
        let reserved = self.0.open().find(|(open, _)| *open == key);
        let reserved = reserved.map(|(_, open)| open.amounts.clone());
        match (self.1, reserved) {
            (Mutant::SettlesTwice, None) => {
                let _ = self.0.reserve(&Limits::NONE, key, actual, NOW);
                self.0.settle(key, actual, NOW);
            }
            (Mutant::CapsAtEstimate, Some(reserved)) => {
                let capped = reserved.get(Meter::Calls).min(actual.get(Meter::Calls));
                self.0.settle(key, &Amounts::of(Meter::Calls, capped), NOW);
            }
            (Mutant::KeepsReservation, Some(reserved)) => {
                self.0.settle(key, actual, NOW);
                let _ = self.0.reserve(&Limits::NONE, key, &reserved, NOW);
            }
            _ => {
                self.0.settle(key, actual, NOW);
            }
        }
    }
    fn release(&mut self, key: &CallKey) {
        self.0.release(key);
    }
    fn account(&self) -> &Account {
        &self.0
    }
}

/// A list of what every call cost or may have cost. Gives what differs from it.
fn differs(mut ledger: impl Ledger, seed: u64) -> Option<String> {
    let mut random = Prng::new(seed);
    let cap = 40 + random.below(40) as u64;
    let limits = Limits::of(Meter::Calls, cap);
    // Each is (key, amount, whether it is under way).
    let mut model: Vec<(usize, u64, bool)> = Vec::new();
    for step in 0..60 {
        let n = random.below(6);
        let amount = 1 + random.below(12) as u64;
        let amounts = Amounts::of(Meter::Calls, amount);
        let used: u64 = model.iter().map(|(_, amount, _)| amount).sum();
        let open = model.iter().position(|(key, _, open)| *key == n && *open);
        match random.below(5) {
            0..3 => {
                let told = ledger.reserve(&limits, &key(n), &amounts);
                let fits = used + amount <= cap;
                if told.is_ok() != fits {
                    return Some(format!("{step}: {used} + {amount} of {cap}: {told:?}"));
                }
                if let Err(over) = told
                    && (over.limit, over.needed(), over.asked) != (cap, used + amount, amount)
                {
                    return Some(format!("{step}: {over:?}"));
                }
                if fits {
                    open.into_iter().for_each(|at| model[at].2 = false);
                    model.push((n, amount, true));
                }
            }
            3 => {
                ledger.settle(&key(n), &amounts);
                open.into_iter()
                    .for_each(|at| model[at] = (n, amount, false));
            }
            _ => {
                ledger.release(&key(n));
                if let Some(at) = open {
                    model.remove(at);
                }
            }
        }
        let of = |open| -> u64 {
            let those = model.iter().filter(|(_, _, is_open)| *is_open == open);
            those.map(|(_, amount, _)| amount).sum()
        };
        let account = ledger.account();
        let found = (
            account.spent().get(Meter::Calls),
            account.reserved().get(Meter::Calls),
        );
        if found != (of(false), of(true)) {
            return Some(format!(
                "{step}: {found:?}, not {:?}",
                (of(false), of(true))
            ));
        }
    }
    None
}

#[test]
fn an_account_does_as_a_naive_model_does() {
    for seed in 0..2_000 {
        assert_eq!(differs(Sound::default(), seed), None, "seed {seed}");
    }
}

#[test]
fn an_account_that_counts_wrong_is_noticed() {
    for mutant in [
        Mutant::ForgetsUnsettled,
        Mutant::ChecksSpentOnly,
        Mutant::SettlesTwice,
        Mutant::CapsAtEstimate,
        Mutant::KeepsReservation,
    ] {
        let broken = || Broken(Account::default(), mutant);
        let noticed = (0..100).filter(|seed| differs(broken(), *seed).is_some());
        let noticed = noticed.count();
        assert!(
            noticed > 50,
            "{mutant:?} was noticed {noticed} times of 100"
        );
    }
}

#[test]
fn an_account_that_nobody_settles_stays_small_and_on_the_safe_side() {
    let mut account = Account::default();
    let one = Amounts::of(Meter::Calls, 1);
    let limits = Limits::of(Meter::Calls, 5_000);
    for n in 0..5_000 {
        let at = Timestamp(n as i64);
        account.reserve(&limits, &key(n), &one, at).unwrap();
    }
    assert_eq!(account.open().count(), Account::RESERVATIONS_MAX);
    assert_eq!(account.spent().get(Meter::Calls), 4_000);
    assert!(account.reserve(&limits, &key(5_000), &one, NOW).is_err());
    // The newest ones are those that are left.
    assert!(account.open().all(|(_, open)| open.at >= Timestamp(4_000)));
}

#[test]
fn numbers_that_end_are_over_any_limit() {
    let mut account = Account::default();
    let all = Amounts::of(Meter::Tokens, u64::MAX);
    let limits = Limits::of(Meter::Tokens, u64::MAX - 1);
    assert!(account.reserve(&limits, &key(0), &all, NOW).is_err());
    account.reserve(&Limits::NONE, &key(0), &all, NOW).unwrap();
    account.settle(&key(0), &all, NOW);
    let over = account
        .reserve(&limits, &key(1), &all, NOW)
        .expect_err("it is over");
    assert_eq!((over.spent, over.needed()), (u64::MAX, u64::MAX));
}

/// Accounts outlive programs: what is stored is read by the next version, or refused.
#[test]
fn the_stored_form_of_an_account_does_not_change() {
    let mut account = Account::default();
    let every = [
        Meter::Tokens,
        Meter::NanoDollars,
        Meter::TimeMs,
        Meter::Calls,
        Meter::Steps,
        Meter::FanOut,
    ];
    let amounts = (1..).zip(every);
    let amounts = amounts.fold(Amounts::NONE, |all, (n, meter)| all.and(meter, n));
    account
        .reserve(&Limits::NONE, &key(0), &amounts, NOW)
        .unwrap();
    account.settle(&key(0), &amounts, NOW);
    account
        .reserve(&Limits::NONE, &key(1), &Amounts::of(Meter::Calls, 1), NOW)
        .unwrap();
    account.raise(&Limits::of(Meter::NanoDollars, 9));
    let stored = concat!(
        r#"{"spent":{"tokens":1,"nano_dollars":2,"calls":4,"steps":5,"fan_out":6},"#,
        r#""reserved":{"call-1":{"amounts":{"calls":1},"at":1000}},"#,
        r#""raised":{"nano_dollars":9}}"#
    );
    assert_eq!(serde_json::to_string(&account).unwrap(), stored);
    assert_eq!(serde_json::from_str::<Account>(stored).unwrap(), account);
    for (from, to) in [
        ("spent", "Spent"),
        (r#","raised":{"nano_dollars":9}"#, ""),
        (r#""tokens":1"#, r#""tokens":-1"#),
        (r#""tokens":1"#, r#""coins":1"#),
        ("call-1", "call 1"),
        ("raised\":", "raised\":{},\"more\":"),
    ] {
        let damaged = stored.replace(from, to);
        assert_ne!(damaged, stored);
        assert!(
            serde_json::from_str::<Account>(&damaged).is_err(),
            "{damaged}"
        );
    }
}
