//! Budgets: what may be spent, reserved before a call and settled after it.
//!
//! An [`Account`] is plain arithmetic: what was spent, and what is reserved for calls that are under way.
//! [`Budgets`] keeps one account per [`Scope`] (a run, inside its thread, inside its tenant) as an item of the
//! long-term [`Store`](superstep_core::store::Store), and changes it only if nobody else did in between. A call must
//! fit into all of them.
//!
//! The promise: whatever crashes, what is spent stays at or below the limit, but for what the calls under way
//! cost beyond their estimates. A reservation that was never settled may have been spent, so it counts: when
//! the same call is made again under its key, the first one is taken as spent and the second must fit beside it.
//!
//! A limit that is reached is no failure. [`BudgetError::Reached`] says which limit of which scope, and by how
//! much; the caller turns it into a question to a person, and continues where it stopped once the limit was
//! [raised](Budgets::raise).
//!
//! Not here: what a call costs (an estimate and a price are the business of those who call), and when to ask.

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
    /// Whose limit.
    pub scope: Scope,
    /// Which, and by how much.
    pub over: Over,
}

/// Why a call may not be made, or what it cost could not be written down.
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
    /// The item of an account is none.
    #[error("the account of {scope} cannot be read")]
    Unreadable {
        /// Whose account.
        scope: Box<Scope>,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Others changed the account each time.
    #[error("the account of {scope} was changed by others {tries} times in a row; try again")]
    Contended {
        /// Whose account.
        scope: Box<Scope>,
        /// How often it was tried.
        tries: u32,
    },
    /// The store underneath.
    #[error("the store of budgets did not do what was asked")]
    Store {
        /// Why.
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

    /// The limit, if one was reached.
    pub fn reached(&self) -> Option<&Reached> {
        match self {
            BudgetError::Reached(reached) => Some(reached),
            BudgetError::Unreadable { .. }
            | BudgetError::Contended { .. }
            | BudgetError::Store { .. } => None,
        }
    }
}
