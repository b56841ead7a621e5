//! Accounts in the long-term store, one item each, and reservations that must fit into several.

use std::fmt;
use std::sync::Arc;

use superstep_core::Timestamp;
use superstep_core::store::{PutItem, Store};

use crate::budget::{Account, Amounts, BudgetError, CallKey, Limits, Over, Reached, Scope};

/// The budgets that calls must fit into: of a run, its thread, its tenant, or some of these.
///
/// ```
/// use std::sync::Arc;
/// use superstep_agent::budget::{Amounts, BudgetError, Budgets, CallKey, Limits, Meter, Scope};
/// use superstep_core::store::Store;
/// use superstep_core::{NodeCx, Timestamp};
///
/// async fn ask(store: Arc<dyn Store>, cx: &NodeCx, now: Timestamp) -> Result<(), BudgetError> {
///     let budgets = Budgets::new(store)
///         .within(Scope::run(cx.thread(), cx.run()), Limits::of(Meter::Calls, 50))
///         .within(Scope::tenant(cx.thread()), Limits::of(Meter::NanoDollars, 20_000_000_000));
///     let call = CallKey::of(cx, "model");
///     let estimate = Amounts::of(Meter::Calls, 1).and(Meter::NanoDollars, 3_000_000);
///     budgets.reserve(&call, &estimate, now).await?;
///     // .. the call ..
///     let cost = Amounts::of(Meter::Calls, 1).and(Meter::NanoDollars, 2_100_000);
///     budgets.settle(&call, &cost, now.plus_ms(800)).await
/// }
/// ```
#[derive(Clone)]
pub struct Budgets {
    store: Arc<dyn Store>,
    /// Sorted from narrow (run) to wide (tenant).
    scopes: Vec<(Scope, Limits)>,
}

impl Budgets {
    /// Creates a set without budgets, so without limits.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            scopes: Vec::new(),
        }
    }

    /// Adds a budget. Spending is counted even on meters without a limit. A second budget for the same scope replaces the
    /// first.
    #[must_use]
    pub fn within(mut self, scope: Scope, limits: Limits) -> Self {
        self.scopes.retain(|(known, _)| *known != scope);
        self.scopes.push((scope, limits));
        self.scopes.sort_by_key(|(scope, _)| scope.level());
        self
    }

    /// Reserves what a call may cost in every budget, or in none if one of them has no room.
    ///
    /// Call this right before each attempt: an attempt repeated under its key, because the outcome of the last one is
    /// unknown, costs again.
    pub async fn reserve(
        &self,
        key: &CallKey,
        estimate: &Amounts,
        now: Timestamp,
    ) -> Result<(), BudgetError> {
        for (at, (scope, limits)) in self.scopes.iter().enumerate() {
            let reserved = self
                .change(scope, now, |account| {
                    account.reserve(limits, key, estimate, now)
                })
                .await?;
            if let Err(over) = reserved {
                self.release_in(&self.scopes[..at], key, now).await?;
                return Err(reached(scope, over));
            }
        }
        Ok(())
    }

    /// Replaces the reservation of a call by its actual cost, higher or lower, in every budget. Settling again changes
    /// nothing.
    pub async fn settle(
        &self,
        key: &CallKey,
        actual: &Amounts,
        now: Timestamp,
    ) -> Result<(), BudgetError> {
        for (scope, _) in &self.scopes {
            self.change(scope, now, |account| account.settle(key, actual, now))
                .await?;
        }
        Ok(())
    }

    /// Removes the reservation of a call that was certainly not made, in every budget.
    pub async fn release(&self, key: &CallKey, now: Timestamp) -> Result<(), BudgetError> {
        self.release_in(&self.scopes, key, now).await
    }

    async fn release_in(
        &self,
        scopes: &[(Scope, Limits)],
        key: &CallKey,
        now: Timestamp,
    ) -> Result<(), BudgetError> {
        for (scope, _) in scopes {
            self.change(scope, now, |account| account.release(key))
                .await?;
        }
        Ok(())
    }

    /// Raises limits of one scope permanently, even if the program configures lower ones later. See [`Account::raise`].
    pub async fn raise(
        &self,
        scope: &Scope,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<(), BudgetError> {
        self.change(scope, now, |account| account.raise(limits))
            .await
    }

    /// Counts reservations made before this time as spent, in every budget, because they will never settle.
    pub async fn forfeit(&self, before: Timestamp, now: Timestamp) -> Result<(), BudgetError> {
        for (scope, _) in &self.scopes {
            self.change(scope, now, |account| account.forfeit(before))
                .await?;
        }
        Ok(())
    }

    /// Loads the account of a scope. Empty if nothing was reserved yet.
    pub async fn account(&self, scope: &Scope, now: Timestamp) -> Result<Account, BudgetError> {
        let (namespace, key) = scope.address()?;
        let item = self.store.get(&namespace, &key, now).await?;
        item.map_or(Ok(Account::default()), |item| read(scope, item.value))
    }

    /// Deletes the account of a finished scope, such as an ended run. Later spending in that scope starts from zero.
    pub async fn forget(&self, scope: &Scope) -> Result<(), BudgetError> {
        let (namespace, key) = scope.address()?;
        self.store.delete(&namespace, &key).await?;
        Ok(())
    }

    /// Changes an account by compare-and-swap, and retries if another writer was first. In each round one competing writer
    /// succeeds, so many failed rounds mean as many writers that made progress.
    async fn change<T>(
        &self,
        scope: &Scope,
        now: Timestamp,
        change: impl Fn(&mut Account) -> T,
    ) -> Result<T, BudgetError> {
        let (namespace, key) = scope.address()?;
        for _ in 0..TRIES_MAX {
            let seen = self.store.get(&namespace, &key, now).await?;
            let seen = seen.map(|item| item.value);
            let before = match &seen {
                Some(value) => read(scope, value.clone())?,
                None => Account::default(),
            };
            let mut after = before.clone();
            let told = change(&mut after);
            if after == before {
                return Ok(told);
            }
            let unreadable = |source| BudgetError::Unreadable {
                scope: Box::new(scope.clone()),
                source,
            };
            let put = PutItem {
                namespace: namespace.clone(),
                key: key.clone(),
                value: serde_json::to_value(&after).map_err(unreadable)?,
                ttl: None,
            };
            if self.store.put_if(seen.as_ref(), &put, now).await? {
                return Ok(told);
            }
        }
        Err(BudgetError::Contended {
            scope: Box::new(scope.clone()),
            tries: TRIES_MAX,
        })
    }
}

fn read(scope: &Scope, value: serde_json::Value) -> Result<Account, BudgetError> {
    serde_json::from_value(value).map_err(|source| BudgetError::Unreadable {
        scope: Box::new(scope.clone()),
        source,
    })
}

fn reached(scope: &Scope, over: Over) -> BudgetError {
    BudgetError::Reached(Box::new(Reached {
        scope: scope.clone(),
        over,
    }))
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets")
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

const TRIES_MAX: u32 = 1_000;
