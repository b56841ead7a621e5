//! The machine, through its public API and without a runtime.

#![cfg(feature = "derive")]
#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod archive;
mod format;
mod label_flows;
mod labels;
mod protocol;
mod simulate;
mod supersteps;
mod suspend;
