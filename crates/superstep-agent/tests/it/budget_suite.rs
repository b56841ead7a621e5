//! Holds every store that budgets are kept in to the clauses of budgets: in memory, SQLite and PostgreSQL. Stores with a
//! defect show that the clauses notice one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value as Json;
use superstep_agent::budget::{Amounts, BudgetError, Budgets, CallKey, Limits, Meter, Scope};
use superstep_conformance::{Report, Verdict, block_on, clauses, give_way, services};
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{
    Item, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult,
};
use superstep_core::{ThreadId, Timestamp};
use superstep_postgres::{Options, Postgres};
use superstep_sqlite::Sqlite;
use tokio_postgres::NoTls;

use crate::budget;

/// Budgets own a handle to their store, so a clause does, too.
type BudgetClause = (
    &'static str,
    fn(Arc<dyn Store>) -> BoxFuture<'static, Verdict>,
);

const CLAUSES: &[BudgetClause] = clauses! {
    budget:
        spending_is_counted_and_kept,
        call_that_does_not_fit_is_told_which_limit_and_by_how_much,
        call_must_fit_into_every_scope,
        refusal_of_a_wider_scope_leaves_nothing_reserved,
        scopes_and_tenants_are_apart,
        settled_twice_is_settled_once,
        settled_for_more_than_reserved_is_counted,
        released_is_given_back,
        raised_budget_goes_on_where_it_stopped,
        raised_twice_is_raised_once,
        time_is_what_passes_between,
        racing_reservations_stay_within_the_cap,
        racing_settlements_lose_nothing,
        crash_loop_spends_at_most_the_cap,
        ping_pong_spends_at_most_the_cap_and_one_call,
        random_crashes_spend_at_most_the_cap,
        forfeited_counts_as_spent,
        damaged_account_is_refused;
};

/// Holds a store to every clause. `make` returns an empty one each time it is called.
async fn budgets<S: Store>(make: impl AsyncFn() -> S) -> Report {
    let mut report = Report::default();
    for (name, clause) in CLAUSES {
        let store = Arc::new(make().await);
        report.add(name, clause(store).await);
    }
    report
}

#[test]
fn budgets_hold_in_memory() {
    block_on(budgets(async || MemoryStore::new())).assert();
}

#[test]
fn budgets_hold_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let made = AtomicU32::new(0);
    let next = async || {
        let name = made.fetch_add(1, Ordering::Relaxed).to_string();
        Sqlite::open(dir.path().join(name)).unwrap()
    };
    block_on(budgets(next)).assert();
}

#[test]
fn budgets_hold_in_sqlite_in_memory() {
    block_on(budgets(async || Sqlite::in_memory().unwrap())).assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_hold_in_postgres() {
    let url = services::url("postgres");
    let schema = format!("budgets_{}", std::process::id());
    let mut options = Options::default();
    options.schema.clone_from(&schema);
    // A schema takes a while to create, so all clauses share one with few partitions.
    options.partitions = 5;
    options.connections = 4;
    let connect = async || {
        let postgres = Postgres::connect_with(&url, options.clone()).await;
        let postgres = postgres.unwrap();
        run_sql(&url, &format!("DELETE FROM \"{schema}\".item")).await;
        postgres
    };
    let report = budgets(connect).await;
    run_sql(&url, &format!("DROP SCHEMA \"{schema}\" CASCADE")).await;
    report.assert();
}

async fn run_sql(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let work = async {
        client
            .batch_execute("SET client_min_messages = error")
            .await?;
        client.batch_execute(sql).await
    };
    tokio::select! {
        done = work => done.unwrap(),
        ended = connection => panic!("the connection ended: {ended:?}"),
    }
}

/// What the clauses do in one process, with the file closed in between.
#[tokio::test]
async fn a_call_that_was_reserved_by_a_process_that_died_counts_in_the_next() {
    const NOW: Timestamp = Timestamp(1_000);
    let scope = Scope::thread(&ThreadId::new("t").unwrap());
    let budgets = |path: &Path| {
        let store = Arc::new(Sqlite::open(path).unwrap());
        Budgets::new(store).within(scope.clone(), Limits::of(Meter::NanoDollars, 1_000))
    };
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
    budgets(&path).raise(&scope, &raised, NOW).await.unwrap();
    budgets(&path).reserve(&call, &cost, NOW).await.unwrap();
    budgets(&path).settle(&call, &cost, NOW).await.unwrap();
    let account = budgets(&path).account(&scope, NOW).await.unwrap();
    assert_eq!(account.spent().get(Meter::NanoDollars), 1_200);
}

/// The arithmetic itself has its mutants in `accounts.rs`.
#[test]
fn budgets_in_a_store_that_does_not_compare_are_caught() {
    const RESERVATIONS: &str = "budget::racing_reservations_stay_within_the_cap";
    const SETTLEMENTS: &str = "budget::racing_settlements_lose_nothing";
    for (defect, clauses) in [
        (Defect::NeverCompares, &[RESERVATIONS] as &[&str]),
        (Defect::StoresLater, &[RESERVATIONS, SETTLEMENTS]),
        (Defect::ReportsLosersAsStored, &[RESERVATIONS]),
    ] {
        let report = block_on(budgets(async || BrokenStore(MemoryStore::new(), defect)));
        for clause in clauses {
            let is_caught = report.failed.iter().any(|(name, _)| name == clause);
            assert!(is_caught, "{defect:?} passes {clause}: {report}");
        }
    }
}

/// What is wrong with compare-and-set.
#[derive(Debug, Clone, Copy)]
enum Defect {
    NeverCompares,
    /// Compares, lets others go first, and then stores.
    StoresLater,
    ReportsLosersAsStored,
}

struct BrokenStore(MemoryStore, Defect);

impl Store for BrokenStore {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        self.0.get(namespace, key, now)
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        self.0.put(put, now)
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            match self.1 {
                Defect::NeverCompares => self.0.put(put, now).await?,
                Defect::StoresLater => {
                    let found = self.0.get(&put.namespace, &put.key, now).await?;
                    give_way().await;
                    if found.map(|item| item.value).as_ref() != seen {
                        return Ok(false);
                    }
                    self.0.put(put, now).await?;
                }
                Defect::ReportsLosersAsStored => {
                    self.0.put_if(seen, put, now).await?;
                }
            }
            Ok(true)
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        self.0.delete(namespace, key)
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        self.0.search(search, now)
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        self.0.namespaces(query, now)
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        self.0.sweep(now, limit)
    }
}
