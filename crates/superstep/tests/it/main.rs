//! The local driver, from outside.

mod differs;
mod failures;
mod kit;
mod parity;
mod pauses;
mod smoke;
mod steps;
mod stopping;
mod subgraphs;
mod time_travel;
mod upgrades;
mod values;
mod watching;
