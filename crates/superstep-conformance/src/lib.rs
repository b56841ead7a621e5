//! What correct is, as code that runs.
//!
//! If you write a [`Checkpointer`] or a [`Store`], run the same suite that ours pass:
//! [`checkpointer`] and [`store`] hold a fresh one to every clause of its trait's docs and give a
//! [`Report`]; [`node_cache`] does so for the results of nodes, [`registry`] for what a server keeps besides. A clause is a
//! small async function named for the rule it checks, so a failure reads as a broken rule: `commit::stale_epoch_is_fenced`.
//! Tests of what a store does beside the rules find commits ready made in [`sample`], and our own stores share [`sql()`].
//!
//! The suite brings no runtime. Run it on the one that your implementation needs; if it needs none,
//! [`block_on`] is enough:
//!
//! ```
//! use superstep_conformance::{block_on, checkpointer};
//! use superstep_core::checkpoint::Memory;
//!
//! block_on(checkpointer(async || Memory::new())).assert();
//! ```
//!
//! For a program that must survive being killed, [`mortal::KillSweep`] kills it at every point and checks what came of it.
//! To change one thing about a checkpointer, write that one thing, and have the rest written by
//! [`forward!`].
//!
//! If you keep something of your own in a store, as `superstep-agent` keeps budgets, write its clauses with [`clauses!`],
//! [`ensure!`], [`ensure_eq!`] and [`ensure_refused!`], and gathers each [`Verdict`] in a [`Report`].
//!
//! What the suite does not see: rule 4 (durability) needs a power cut, and damaged bytes need a hand in
//! the database. Test those beside it.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Test with kill points](../../book/html/docs/howto/test-with-kill-points.html)
//! - [Write a checkpointer](../../book/html/docs/inside/write-a-checkpointer.html)
//! - [Testing](../../book/html/docs/testing.html)
//!
//! [`Checkpointer`]: superstep_core::checkpoint::Checkpointer
//! [`Store`]: superstep_core::store::Store

mod clauses;
mod errand;
#[doc(hidden)]
pub mod forward;
pub mod mortal;
mod poll;
mod prng;
mod report;
pub mod sample;
pub mod services;
pub mod sim;
pub mod sql;

pub use clauses::{checkpointer, node_cache, registry, sql, store};
pub use poll::{block_on, give_way, join_all};
pub use prng::Prng;
pub use report::{Fault, Report, Verdict};
