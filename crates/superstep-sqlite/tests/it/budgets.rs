//! Budgets outlive the process: what the clauses play in one process, with the file closed in between.

use std::path::Path;
use std::sync::Arc;

use superstep_core::budget::{Amounts, BudgetError, Budgets, CallKey, Limits, Meter, Scope};
use superstep_core::{ThreadId, Timestamp};
use superstep_sqlite::Sqlite;

const NOW: Timestamp = Timestamp(1_000);

fn scope() -> Scope {
    Scope::thread(&ThreadId::new("t").unwrap())
}

fn budgets(path: &Path) -> Budgets {
    let store = Arc::new(Sqlite::open(path).unwrap());
    Budgets::new(store).within(scope(), Limits::of(Meter::NanoDollars, 1_000))
}

#[tokio::test]
async fn a_call_that_was_reserved_by_a_process_that_died_counts_in_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let call = CallKey::new("call").unwrap();
    let cost = Amounts::of(Meter::NanoDollars, 300);
    let mut made = 0;
    let refused = loop {
        match budgets(&path).reserve(&call, &cost, NOW).await {
            Ok(()) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, BudgetError::Reached(_)), "{refused}");
    assert_eq!(made, 3);
    let raised = Limits::of(Meter::NanoDollars, 1_200);
    budgets(&path).raise(&scope(), &raised, NOW).await.unwrap();
    budgets(&path).reserve(&call, &cost, NOW).await.unwrap();
    budgets(&path).settle(&call, &cost, NOW).await.unwrap();
    let account = budgets(&path).account(&scope(), NOW).await.unwrap();
    assert_eq!(account.spent().get(Meter::NanoDollars), 1_200);
}
