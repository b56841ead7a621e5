//! What correct is, as code that runs.
//!
//! Whoever writes a [`Checkpointer`] or a [`Store`] runs the same suite that ours pass:
//! [`checkpointer`] and [`store`] hold a fresh one to every clause of its trait's docs and give a
//! [`Report`]; [`budgets`] does so for what core keeps in a store. A clause is a small async function named for the rule it checks, so a failure reads
//! as a broken rule: `commit::stale_epoch_is_fenced`.
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
//! Whoever writes a program that must survive being killed finds a process that dies at a chosen point in [`mortal`].
//!
//! What the suite does not see: rule 4 (durability) needs a power cut, and damaged bytes need a hand in
//! the database. Test those beside it.
//!
//! [`Checkpointer`]: superstep_core::checkpoint::Checkpointer
//! [`Store`]: superstep_core::store::Store

mod clauses;
mod errand;
pub mod mortal;
mod poll;
mod prng;
mod report;
mod sample;
pub mod services;
pub mod sim;

pub use clauses::{budgets, checkpointer, store};
pub use poll::block_on;
pub use report::Report;
