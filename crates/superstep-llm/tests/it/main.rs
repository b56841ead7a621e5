//! The behaviour of models, scripted, recorded and real.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod cassettes;
#[cfg(feature = "remote")]
mod endless;
mod fitting;
mod kit;
mod names;
#[cfg(feature = "remote")]
mod real;
mod retries;
mod scripts;
#[cfg(feature = "remote")]
mod secrets;
#[cfg(feature = "remote")]
mod server_kit;
#[cfg(feature = "remote")]
mod servers;
mod structured;
