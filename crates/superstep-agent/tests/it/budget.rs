//! The clauses of budgets: what is spent stays within the limits, whoever races and whatever crashes.
//! `budget_suite.rs` holds the stores to them.
//!
//! Every clause that races makes its store give way before each operation, so that also a store in memory is
//! met by all of them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value as Json, json};
use superstep_agent::budget::{
    Amounts, BudgetError, Budgets, CallKey, Level, Limits, Meter, Reached, Scope,
};
use superstep_conformance::{
    Fault, Prng, Verdict, ensure, ensure_eq, ensure_refused, give_way, join_all,
};
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult};
use superstep_core::{RunId, ThreadId, Timestamp};

pub(crate) async fn spending_is_counted_and_kept(db: Arc<dyn Store>) -> Verdict {
    let budgets = of_run(&db, Limits::of(Meter::Tokens, 1_000));
    for n in 0..5 {
        budgets.reserve(&key(n), &tokens(100), NOW).await?;
        budgets.settle(&key(n), &tokens(60), NOW).await?;
    }
    budgets.reserve(&key(9), &tokens(100), NOW).await?;
    // Another process, later.
    let account = of_run(&db, Limits::NONE)
        .account(&run(), later(9_000))
        .await?;
    ensure_eq!(account.spent().get(Meter::Tokens), 300, "tokens spent");
    ensure_eq!(
        account.reserved().get(Meter::Tokens),
        100,
        "tokens reserved"
    );
    Ok(())
}

pub(crate) async fn call_that_does_not_fit_is_told_which_limit_and_by_how_much(
    db: Arc<dyn Store>,
) -> Verdict {
    let limits = Limits::of(Meter::Tokens, 1_000).and(Meter::Calls, 50);
    let budgets = of_run(&db, limits);
    budgets.reserve(&key(0), &tokens(700), NOW).await?;
    budgets.settle(&key(0), &tokens(650), NOW).await?;
    budgets.reserve(&key(1), &tokens(300), NOW).await?;
    let reached = reached(budgets.reserve(&key(2), &tokens(80), NOW).await)?;
    let over = reached.over;
    ensure_eq!(reached.scope, run(), "whose limit");
    ensure_eq!(
        (
            over.meter,
            over.limit,
            over.spent,
            over.reserved,
            over.asked
        ),
        (Meter::Tokens, 1_000, 650, 300, 80),
        "which limit"
    );
    ensure_eq!((over.short_by(), over.needed()), (30, 1_030), "by how much");
    // What fits still goes, up to the last token.
    budgets.reserve(&key(3), &tokens(50), NOW).await?;
    Ok(())
}

pub(crate) async fn call_must_fit_into_every_scope(db: Arc<dyn Store>) -> Verdict {
    for (narrow, wide, widest, level) in [
        (5, 9, 9, Level::Run),
        (9, 5, 9, Level::Thread),
        (9, 9, 5, Level::Tenant),
    ] {
        let thread = ThreadId::of_tenant(&format!("{level:?}"), "thread")?;
        let scope = Scope::run(&thread, RunId::from_bytes([1; 16]));
        let budgets = Budgets::new(db.clone())
            .within(Scope::tenant(&thread), Limits::of(Meter::Calls, widest))
            .within(scope, Limits::of(Meter::Calls, narrow))
            .within(Scope::thread(&thread), Limits::of(Meter::Calls, wide));
        for n in 0..5 {
            budgets.reserve(&key(n), &calls(1), NOW).await?;
        }
        let reached = reached(budgets.reserve(&key(5), &calls(1), NOW).await)?;
        ensure_eq!(reached.scope.level(), level, "whose limit is reached");
    }
    Ok(())
}

pub(crate) async fn refusal_of_a_wider_scope_leaves_nothing_reserved(
    db: Arc<dyn Store>,
) -> Verdict {
    let budgets = nested(&db, 100, 100, 2);
    for n in 0..2 {
        budgets.reserve(&key(n), &calls(1), NOW).await?;
    }
    for n in 2..50 {
        reached(budgets.reserve(&key(n), &calls(1), NOW).await)?;
    }
    for scope in [run(), Scope::thread(&thread()), Scope::tenant(&thread())] {
        let account = budgets.account(&scope, NOW).await?;
        ensure_eq!(
            account.reserved().plus(account.spent()).get(Meter::Calls),
            2,
            "calls of {scope} after 48 were refused"
        );
    }
    Ok(())
}

pub(crate) async fn scopes_and_tenants_are_apart(db: Arc<dyn Store>) -> Verdict {
    let mut scopes = Vec::new();
    for (tenant, name) in [
        ("", "a"),
        ("a.b", "a"),
        ("a-b", "a"),
        ("a", "a"),
        ("a", "b"),
    ] {
        let thread = ThreadId::of_tenant(tenant, name)?;
        scopes.push(Scope::thread(&thread));
        scopes.push(Scope::run(&thread, RunId::from_bytes([1; 16])));
        scopes.push(Scope::run(&thread, RunId::from_bytes([2; 16])));
        scopes.push(Scope::tenant(&thread));
    }
    scopes.sort();
    // The two threads of tenant `a` share its account.
    scopes.dedup();
    ensure_eq!(scopes.len(), 19, "scopes");
    for (n, scope) in (1..).zip(&scopes) {
        let budgets = Budgets::new(db.clone()).within(scope.clone(), Limits::NONE);
        budgets.reserve(&key(0), &tokens(n), NOW).await?;
    }
    for (n, scope) in (1..).zip(&scopes) {
        let account = Budgets::new(db.clone()).account(scope, NOW).await?;
        ensure_eq!(
            account.reserved().get(Meter::Tokens),
            n,
            "what {scope} has reserved"
        );
    }
    Ok(())
}

pub(crate) async fn settled_twice_is_settled_once(db: Arc<dyn Store>) -> Verdict {
    let budgets = nested(&db, 100, 100, 100);
    budgets.reserve(&key(0), &calls(3), NOW).await?;
    for _ in 0..3 {
        budgets.settle(&key(0), &calls(2), NOW).await?;
    }
    budgets.settle(&key(7), &calls(50), NOW).await?;
    ensure_eq!(used(&budgets, Meter::Calls).await?, 2, "calls used");
    Ok(())
}

pub(crate) async fn settled_for_more_than_reserved_is_counted(db: Arc<dyn Store>) -> Verdict {
    let budgets = of_run(&db, Limits::of(Meter::Tokens, 100));
    budgets.reserve(&key(0), &tokens(90), NOW).await?;
    budgets.settle(&key(0), &tokens(140), NOW).await?;
    let over = reached(budgets.reserve(&key(1), &tokens(1), NOW).await)?.over;
    ensure_eq!((over.spent, over.short_by()), (140, 41), "what is over");
    Ok(())
}

pub(crate) async fn released_is_given_back(db: Arc<dyn Store>) -> Verdict {
    let budgets = nested(&db, 1, 1, 1);
    for n in 0..20 {
        budgets.reserve(&key(n), &calls(1), NOW).await?;
        budgets.release(&key(n), NOW).await?;
    }
    ensure_eq!(used(&budgets, Meter::Calls).await?, 0, "calls used");
    Ok(())
}

pub(crate) async fn raised_budget_goes_on_where_it_stopped(db: Arc<dyn Store>) -> Verdict {
    let budgets = of_run(&db, Limits::of(Meter::Calls, 10));
    let mut made = 0;
    for limit in [10, 15, 40] {
        let over = loop {
            match budgets.reserve(&key(made), &calls(1), NOW).await {
                Ok(()) => budgets.settle(&key(made), &calls(1), NOW).await?,
                refused => break reached(refused)?.over,
            }
            made += 1;
        };
        ensure_eq!((made, over.limit), (limit, limit), "calls under the limit");
        let next = if limit == 10 { 15 } else { 40 };
        budgets
            .raise(&run(), &Limits::of(Meter::Calls, next), NOW)
            .await?;
    }
    // Another process that still has the old limit in its settings.
    let account = of_run(&db, Limits::of(Meter::Calls, 10))
        .account(&run(), NOW)
        .await?;
    let limits = account.limits(&Limits::of(Meter::Calls, 10));
    ensure_eq!(limits.get(Meter::Calls), Some(40), "the limit that holds");
    Ok(())
}

pub(crate) async fn raised_twice_is_raised_once(db: Arc<dyn Store>) -> Verdict {
    let budgets = of_run(&db, Limits::of(Meter::Calls, 10));
    for limit in [15, 15, 12] {
        budgets
            .raise(&run(), &Limits::of(Meter::Calls, limit), NOW)
            .await?;
    }
    budgets.reserve(&key(0), &calls(15), NOW).await?;
    let over = reached(budgets.reserve(&key(1), &calls(1), NOW).await)?.over;
    ensure_eq!(over.limit, 15, "the limit that holds");
    // What has no limit does not get one by being raised.
    budgets
        .raise(&run(), &Limits::of(Meter::Tokens, 5), NOW)
        .await?;
    budgets.reserve(&key(2), &tokens(500), NOW).await?;
    Ok(())
}

pub(crate) async fn time_is_what_passes_between(db: Arc<dyn Store>) -> Verdict {
    let budgets = of_run(&db, Limits::of(Meter::TimeMs, 10_000));
    let second = Amounts::of(Meter::TimeMs, 1_000);
    budgets.reserve(&key(0), &second, NOW).await?;
    budgets
        .settle(&key(0), &Amounts::NONE, later(2_500))
        .await?;
    // A person takes two days to answer, and a clock goes back.
    let two_days = 2 * 24 * 3_600_000;
    budgets.reserve(&key(1), &second, later(two_days)).await?;
    budgets
        .settle(&key(1), &Amounts::NONE, later(two_days - 50))
        .await?;
    ensure_eq!(used(&budgets, Meter::TimeMs).await?, 2_500, "ms used");
    let rest = Amounts::of(Meter::TimeMs, 7_501);
    let over = reached(budgets.reserve(&key(2), &rest, later(two_days)).await)?.over;
    ensure_eq!(over.short_by(), 1, "ms too much");
    Ok(())
}

pub(crate) async fn racing_reservations_stay_within_the_cap(db: Arc<dyn Store>) -> Verdict {
    let db = GivesWay::before(db);
    let budgets = nested(&db, 1_000, 1_000, 37);
    let keys: Vec<CallKey> = (0..100).map(key).collect();
    let cost = calls(1);
    let tries = keys.iter().map(|key| budgets.reserve(key, &cost, NOW));
    let mut made = 0;
    for result in join_all(tries).await {
        match result {
            Ok(()) => made += 1,
            refused => {
                reached(refused)?;
            }
        }
    }
    ensure_eq!(made, 37, "calls that fit of 100 at once");
    for scope in [run(), Scope::thread(&thread()), Scope::tenant(&thread())] {
        let account = budgets.account(&scope, NOW).await?;
        ensure_eq!(
            account.reserved().get(Meter::Calls),
            37,
            "calls that {scope} has reserved"
        );
    }
    Ok(())
}

pub(crate) async fn racing_settlements_lose_nothing(db: Arc<dyn Store>) -> Verdict {
    let db = GivesWay::before(db);
    let budgets = of_run(&db, Limits::of(Meter::Tokens, 100_000));
    let call = async |n: u64| -> Result<(), BudgetError> {
        budgets.reserve(&key(n), &tokens(500), NOW).await?;
        budgets.settle(&key(n), &tokens(n), NOW).await
    };
    for result in join_all((0..100).map(call)).await {
        result?;
    }
    let account = budgets.account(&run(), NOW).await?;
    ensure_eq!(account.spent().get(Meter::Tokens), 4_950, "tokens spent");
    ensure_eq!(account.open().count(), 0, "reservations that are left");
    Ok(())
}

pub(crate) async fn crash_loop_spends_at_most_the_cap(db: Arc<dyn Store>) -> Verdict {
    let (cap, cost) = (10_000, 333);
    let mut paid = 0;
    for _ in 0..1_000 {
        // A new process each time. It reserves, pays, and dies before it can settle.
        let budgets = of_run(&db, Limits::of(Meter::NanoDollars, cap));
        match budgets.reserve(&key(0), &dollars(cost), NOW).await {
            Ok(()) => paid += cost,
            refused => {
                reached(refused)?;
            }
        }
    }
    ensure!(
        paid <= cap && paid + cost > cap,
        "1,000 crashes paid {paid} of {cap}"
    );
    Ok(())
}

pub(crate) async fn ping_pong_spends_at_most_the_cap_and_one_call(db: Arc<dyn Store>) -> Verdict {
    // Two agents of two threads answer each other for ever; each is under its limits, their tenant is not.
    let cap = 10_000;
    let (estimate, most) = (90, 120);
    let threads = [
        ThreadId::of_tenant("acme", "ping")?,
        ThreadId::of_tenant("acme", "pong")?,
    ];
    let mut random = Prng::new(0x0ddb);
    let mut paid = 0;
    for turn in 0_u64.. {
        let thread = &threads[(turn % 2) as usize];
        let budgets = Budgets::new(db.clone())
            .within(Scope::thread(thread), Limits::of(Meter::NanoDollars, cap))
            .within(Scope::tenant(thread), Limits::of(Meter::NanoDollars, cap));
        if let Err(refused) = budgets.reserve(&key(turn), &dollars(estimate), NOW).await {
            let reached = reached(Err(refused))?;
            ensure_eq!(reached.scope.level(), Level::Tenant, "whose limit it is");
            break;
        }
        let cost = 1 + random.below(most as usize) as u64;
        paid += cost;
        budgets.settle(&key(turn), &dollars(cost), NOW).await?;
    }
    ensure!(
        paid <= cap + (most - estimate) && paid + estimate > cap,
        "ping-pong paid {paid} of {cap}"
    );
    Ok(())
}

/// Calls race, cost at most what they were to, and die before or after paying; whoever dies comes again.
pub(crate) async fn random_crashes_spend_at_most_the_cap(db: Arc<dyn Store>) -> Verdict {
    let db = GivesWay::before(db);
    const SIDE_BY_SIDE: u64 = 8;
    let (estimate, cap) = (50, 5_000);
    let paid = AtomicU64::new(0);
    let budgets = nested_dollars(&db, 100_000, cap, 2 * cap);
    let lane = async |lane: u64| -> Result<(), Fault> {
        let mut random = Prng::new(0xca11 + lane);
        for turn in 0..60 {
            let call = key(lane * 1_000 + turn);
            loop {
                if let Err(refused) = budgets.reserve(&call, &dollars(estimate), NOW).await {
                    reached(Err(refused))?;
                    return Ok(());
                }
                if random.below(4) == 0 {
                    continue;
                }
                let cost = 1 + random.below(estimate as usize) as u64;
                paid.fetch_add(cost, Ordering::Relaxed);
                if random.below(4) == 0 {
                    continue;
                }
                budgets.settle(&call, &dollars(cost), NOW).await?;
                break;
            }
        }
        Ok(())
    };
    for result in join_all((0..SIDE_BY_SIDE).map(lane)).await {
        result?;
    }
    let account = budgets.account(&Scope::thread(&thread()), NOW).await?;
    let counted = account.spent().clone().plus(&account.reserved());
    let (paid, counted) = (paid.into_inner(), counted.get(Meter::NanoDollars));
    ensure!(
        paid <= counted && counted <= cap && counted + estimate > cap,
        "{paid} was paid and {counted} counted of {cap}"
    );
    Ok(())
}

pub(crate) async fn forfeited_counts_as_spent(db: Arc<dyn Store>) -> Verdict {
    let budgets = nested(&db, 10, 10, 10);
    budgets.reserve(&key(0), &calls(1), NOW).await?;
    budgets.reserve(&key(1), &calls(1), later(1_000)).await?;
    budgets.forfeit(later(1_000), later(2_000)).await?;
    let account = budgets.account(&run(), NOW).await?;
    ensure_eq!(account.spent().get(Meter::Calls), 1, "calls spent");
    ensure_eq!(account.reserved().get(Meter::Calls), 1, "calls reserved");
    Ok(())
}

pub(crate) async fn damaged_account_is_refused(db: Arc<dyn Store>) -> Verdict {
    let budgets = of_run(&db, Limits::of(Meter::Calls, 1));
    budgets.reserve(&key(0), &calls(1), NOW).await?;
    let search = Search::default();
    let found = db.search(&search, NOW).await?;
    let item = found
        .first()
        .ok_or_else(|| Fault::new("the account is no item".to_owned()))?;
    for damage in [json!({}), json!(1), json!({ "spent": {}, "reserved": {} })] {
        let put = PutItem {
            namespace: item.namespace.clone(),
            key: item.key.clone(),
            value: damage,
            ttl: None,
        };
        db.put(&put, NOW).await?;
        let result = budgets.reserve(&key(1), &calls(1), NOW).await;
        ensure_refused!(
            result,
            BudgetError::Unreadable { .. },
            "a call under a damaged account"
        );
    }
    Ok(())
}

/// A store that lets everybody else go first, before each thing it does.
struct GivesWay(Arc<dyn Store>);

impl GivesWay {
    fn before(db: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Self(db))
    }
}

impl Store for GivesWay {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(async move {
            give_way().await;
            self.0.get(namespace, key, now).await
        })
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
            give_way().await;
            self.0.put_if(seen, put, now).await
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

const NOW: Timestamp = Timestamp(1_000_000);

fn later(ms: u64) -> Timestamp {
    NOW.plus_ms(ms)
}

fn thread() -> ThreadId {
    ThreadId::of_tenant("acme", "thread").expect("the suite names threads well")
}

fn run() -> Scope {
    Scope::run(&thread(), RunId::from_bytes([7; 16]))
}

fn of_run(db: &Arc<dyn Store>, limits: Limits) -> Budgets {
    Budgets::new(db.clone()).within(run(), limits)
}

/// So many calls for the run, its thread and its tenant.
fn nested(db: &Arc<dyn Store>, narrow: u64, wide: u64, widest: u64) -> Budgets {
    of_run(db, Limits::of(Meter::Calls, narrow))
        .within(Scope::thread(&thread()), Limits::of(Meter::Calls, wide))
        .within(Scope::tenant(&thread()), Limits::of(Meter::Calls, widest))
}

fn nested_dollars(db: &Arc<dyn Store>, narrow: u64, wide: u64, widest: u64) -> Budgets {
    let of = |limit| Limits::of(Meter::NanoDollars, limit);
    of_run(db, of(narrow))
        .within(Scope::thread(&thread()), of(wide))
        .within(Scope::tenant(&thread()), of(widest))
}

fn key(n: u64) -> CallKey {
    CallKey::new(&format!("call-{n}")).expect("the suite names calls well")
}

fn tokens(n: u64) -> Amounts {
    Amounts::of(Meter::Tokens, n)
}

fn calls(n: u64) -> Amounts {
    Amounts::of(Meter::Calls, n)
}

fn dollars(n: u64) -> Amounts {
    Amounts::of(Meter::NanoDollars, n)
}

async fn used(budgets: &Budgets, meter: Meter) -> Result<u64, Fault> {
    let account = budgets.account(&run(), NOW).await?;
    Ok(account.reserved().plus(account.spent()).get(meter))
}

fn reached(result: Result<(), BudgetError>) -> Result<Reached, Fault> {
    match result {
        Ok(()) => Err(Fault::new("a call fits that must not".to_owned())),
        Err(error) => match error.reached() {
            Some(reached) => Ok(reached.clone()),
            None => Err(error.into()),
        },
    }
}
