//! Budgets: limits on spending, reserved before a call and settled after it.
//!
//! An [`Account`] is plain arithmetic: what was spent, and what is reserved for calls in progress. [`Budgets`] stores one
//! account per [`Scope`] (a run, inside its thread, inside its tenant) as an item of the long-term
//! [`Store`](superstep_core::store::Store), and changes it by compare-and-swap. A call must fit into all of them.
//!
//! The guarantee: whatever crashes, spending stays at or below the limit, except for what calls in progress cost beyond their
//! estimates. A reservation that never settled may have been spent, so it counts: when the same call is repeated under its
//! key, the first attempt counts as spent and the second must fit in addition.
//!
//! Reaching a limit is not a failure. [`BudgetError::Reached`] says which limit of which scope, and by how much; the caller
//! interrupts for a person, and continues where it stopped once the limit was [raised](Budgets::raise).
//!
//! Out of scope: estimating and pricing a call, and deciding when to ask a person. Both are up to the caller.

mod account;
mod amounts;
mod budgets;
mod key;
mod scope;

use superstep_core::store::StoreError;

pub use account::{Account, Over, Reservation};
pub use amounts::{Amounts, Limits, Meter};
pub use budgets::Budgets;
pub use key::{CallKey, CallKeyError};
pub use scope::{Level, Scope};

/// A limit that a call does not fit under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Scope that the limit belongs to.
    pub scope: Scope,
    /// The limit, and by how much the call exceeds it.
    pub over: Over,
}

/// Error from reserving, settling or reading a budget.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// A limit is reached. Ask a person, and raise it.
    #[error(
        "the budget of {} allows {} {}: {} spent, {} reserved, and this call needs {}, which is {} too much",
        .0.scope, .0.over.limit, .0.over.meter, .0.over.spent, .0.over.reserved, .0.over.asked,
        .0.over.short_by()
    )]
    Reached(Box<Reached>),
    /// The stored item is not a valid account.
    #[error("the account of {scope} cannot be read")]
    Unreadable {
        /// Scope of the account.
        scope: Box<Scope>,
        /// Decoding error.
        #[source]
        source: serde_json::Error,
    },
    /// Concurrent writers won the compare-and-swap on every attempt.
    #[error("the account of {scope} was changed by others {tries} times in a row; try again")]
    Contended {
        /// Scope of the account.
        scope: Box<Scope>,
        /// Number of attempts made.
        tries: u32,
    },
    /// The long-term store failed.
    #[error("the store of budgets did not do what was asked")]
    Store {
        /// Error of the store.
        #[from]
        source: StoreError,
    },
}

impl BudgetError {
    /// Every code of this error, each with a page in the error index.
    pub const CODES: &'static [&'static str] = &[
        "budget-reached",
        "budget-unreadable",
        "budget-contended",
        "budget-store",
    ];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Reached(_) => "budget-reached",
            Self::Unreadable { .. } => "budget-unreadable",
            Self::Contended { .. } => "budget-contended",
            Self::Store { .. } => "budget-store",
        }
    }

    /// Returns the limit, if this error is a reached limit.
    pub fn reached(&self) -> Option<&Reached> {
        match self {
            BudgetError::Reached(reached) => Some(reached),
            BudgetError::Unreadable { .. }
            | BudgetError::Contended { .. }
            | BudgetError::Store { .. } => None,
        }
    }
}
