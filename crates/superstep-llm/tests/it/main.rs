//! The behaviour of models, scripted, recorded and real.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod cassettes;
mod endless;
mod fitting;
mod kit;
mod names;
mod real;
mod retries;
mod scripts;
mod secrets;
mod servers;
mod structured;
