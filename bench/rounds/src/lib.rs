//! What every side of a benchmark does alike.
//!
//! A side is a program: ours, a floor, or a peer. It is started as `program WORK STORE [name=value ...]`, opens what it
//! needs, says that it is ready, and then does one round for every line it reads, each answered by a line of JSON. So
//! rounds of different sides can alternate, and what one takes to start is in nobody's figures. The sides in Python and
//! JavaScript speak the same lines.
//!
//! This crate knows no graphs and no stores: [`Task`] is the command line, [`Round`] an answer, [`serve`] the loop. It
//! depends on none of ours, so that the floor, which is built on it, does not either.

mod messages;
mod round;
mod task;

pub use messages::message;
pub use round::{Round, Stopwatch, serve, serve_used};
pub use task::Task;

/// Why a side cannot go on.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
