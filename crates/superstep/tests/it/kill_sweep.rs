//! The kill sweep, over graphs that are right and over graphs that are broken on purpose: it must notice each of them, and say
//! where.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use superstep::prelude::*;
use superstep::testing::Scenario;
use superstep_conformance::mortal::{Fate, KillFailure, KillProblem, KillSweep, SweepReport};
use superstep_sqlite::Sqlite;

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Refund {
    cents: i64,
    receipt: Option<String>,
}

/// What outlives the processes: the store, and a bank that drops a payment whose key it knows.
#[derive(Default)]
struct Bank {
    store: Memory,
    paid: Mutex<Vec<String>>,
    calls: AtomicU64,
}

impl Bank {
    fn pay(&self, key: &str) -> String {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut paid = self.paid.lock().unwrap();
        if !paid.iter().any(|known| known == key) {
            paid.push(key.to_owned());
        }
        "receipt".to_owned()
    }

    fn payments(&self) -> usize {
        self.paid.lock().unwrap().len()
    }
}

/// How a node pays.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// In a step, under the key of the effect.
    Right,
    /// Outside of a step, before a question, under a key that no other execution has.
    OutsideOfAStep,
    /// In a step, under a key that each call draws.
    KeyOfTheCall,
    /// It counts in the state what it should ask the bank.
    CountsExecutions,
}

fn graph(bank: &Arc<Bank>, fate: &Arc<Fate>, way: Way) -> Graph<Refund> {
    let (bank, fate) = (bank.clone(), fate.clone());
    let pay = move |_: View<Refund>, cx: NodeCx| {
        let (bank, fate) = (bank.clone(), fate.clone());
        async move {
            let call = bank.calls.load(Ordering::SeqCst);
            if way == Way::OutsideOfAStep {
                bank.pay(&format!("call {call}"));
            }
            let may: bool = cx.interrupt(Interrupt::new("approve", "Pay?")).await?;
            assert!(may);
            let key = match way {
                Way::KeyOfTheCall => format!("call {call}"),
                _ => cx.effect_key("pay"),
            };
            let act = async || fate.around(async { bank.pay(&key) }).await;
            let receipt = match way {
                Way::OutsideOfAStep => "receipt".to_owned(),
                _ => cx.step("pay", || async move { Ok(act().await) }).await?,
            };
            let receipt = match way {
                Way::CountsExecutions => format!("{receipt} {}", bank.calls.load(Ordering::SeqCst)),
                _ => receipt,
            };
            Ok::<_, NodeError>(RefundUpdate::default().receipt(Some(receipt)))
        }
    };
    Graph::builder("refund")
        .node("pay", pay)
        .edge(START, "pay")
        .edge("pay", END)
        .build()
        .unwrap()
}

async fn life(bank: &Arc<Bank>, fate: &Arc<Fate>, way: Way) -> Refund {
    let end = Scenario::new(&graph(bank, fate, way))
        .checkpointer(fate.checkpointer(bank.store.clone()))
        .start(RefundUpdate::default().cents(1_900))
        .answer("approve", true)
        .run()
        .await
        .unwrap();
    end.state
}

async fn sweep(way: Way) -> Result<SweepReport<Refund>, KillFailure> {
    let sweep = KillSweep::new(Arc::<Bank>::default, async |bank, fate| {
        life(bank, fate, way).await
    });
    sweep.run(once).await
}

async fn once(trial: &superstep_conformance::mortal::Trial<'_, Arc<Bank>, Refund>) {
    assert_eq!(trial.world.payments(), 1, "payments");
}

#[tokio::test]
async fn a_payment_in_a_step_survives_every_kill() {
    let report = sweep(Way::Right).await.unwrap();
    assert_eq!(report.kills, report.points, "every point was reached");
    assert!(report.points > 20, "{}", report.points);
    assert_eq!(report.calm.receipt.as_deref(), Some("receipt"));
}

#[tokio::test]
async fn killed_several_times_in_a_row_it_survives_too() {
    let sweep = KillSweep::new(Arc::<Bank>::default, async |bank, fate| {
        life(bank, fate, Way::Right).await
    });
    let report = sweep.repeated(60, 7).run(once).await.unwrap();
    assert!(report.kills > 60, "{}", report.kills);
}

#[tokio::test]
async fn the_same_on_sqlite() {
    let sweep = KillSweep::new(
        || (tempfile::tempdir().unwrap(), Arc::<Bank>::default()),
        async |(folder, bank), fate| {
            let sqlite = Sqlite::open(folder.path().join("refunds.db")).unwrap();
            let scenario = Scenario::new(&graph(bank, fate, Way::Right));
            let scenario = scenario.checkpointer(fate.checkpointer(sqlite));
            let scenario = scenario.start(RefundUpdate::default().cents(1_900));
            scenario.answer("approve", true).run().await.unwrap().state
        },
    );
    let report = sweep.run(async |trial| assert_eq!(trial.world.1.payments(), 1));
    let report = report.await.unwrap();
    assert_eq!(report.kills, report.points, "every point was reached");
}

#[tokio::test]
async fn an_effect_outside_of_a_step_is_noticed() {
    // It happens twice even without a kill: the node runs again when its question is answered.
    let failure = sweep(Way::OutsideOfAStep).await.unwrap_err();
    let said = failure.to_string();
    assert!(
        said.starts_with("without a kill, the process ended, but the check failed: assertion"),
        "{said}"
    );
}

#[tokio::test]
async fn a_key_that_changes_with_the_call_is_noticed() {
    let failure = sweep(Way::KeyOfTheCall).await.unwrap_err();
    assert_eq!(failure.kills[0].site, "after an act");
    let (point, said) = (failure.kills[0].point, failure.to_string());
    let begin = format!(
        "killed at point {point} of {} (after an act), and the process after it ended, but the check failed: assertion",
        failure.points
    );
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.contains("payments"), "{said}");
    assert!(said.ends_with(&format!("`.only([{point}])`")), "{said}");

    // The trial alone comes to the same.
    let sweep = KillSweep::new(Arc::<Bank>::default, async |bank, fate| {
        life(bank, fate, Way::KeyOfTheCall).await
    });
    let again = sweep.only([point]).run(once).await.unwrap_err();
    assert_eq!(again.to_string(), said);
    // What `unwrap` prints.
    assert_eq!(format!("{again:?}"), said);
}

#[tokio::test]
async fn an_end_that_depends_on_the_kill_is_noticed() {
    let failure = sweep(Way::CountsExecutions).await.unwrap_err();
    let KillProblem::OtherEnd { calm, end } = &failure.problem else {
        panic!("{failure}");
    };
    assert!(
        calm.contains("receipt 1") && end.contains("receipt 2"),
        "{failure}"
    );
    assert!(
        failure.to_string().contains("ended in another way"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_restart_that_panics_is_noticed() {
    let sweep = KillSweep::new(Arc::<Bank>::default, async |bank, fate| {
        let runtime = Runtime::new(fate.checkpointer(bank.store.clone()));
        let thread = runtime.thread(&graph(bank, fate, Way::Right), "t").unwrap();
        // After a kill, the thread has a run already.
        assert!(
            thread.state().await.unwrap().is_none(),
            "it was started before"
        );
        thread.start(RefundUpdate::default()).await.unwrap().seq
    });
    let failure = sweep.run(async |_| {}).await.unwrap_err();
    assert!(
        failure
            .to_string()
            .contains("the process after it panicked: it was started before"),
        "{failure}"
    );
    assert_eq!(failure.kills[0].site, "after commit 1");
}

#[tokio::test]
async fn a_program_without_points_is_refused() {
    let sweep = KillSweep::new(Bank::default, async |bank: &Bank, _| bank.payments());
    let failure = sweep.run(async |_| {}).await.unwrap_err();
    assert_eq!(failure.problem, KillProblem::NoPoints);
    assert!(
        failure.to_string().contains("fate.checkpointer(store)"),
        "{failure}"
    );
}
