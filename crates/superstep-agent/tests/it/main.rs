//! Agents through the public API, on the local runtime: loops, approvals, deaths, lost answers, labels, budgets.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

use superstep_conformance::mortal;

mod accounts;
mod approvals;
mod budget;
mod budget_suite;
mod events;
mod histories;
mod in_turn;
mod keys;
mod kills;
mod kit;
mod knobs;
mod labels;
#[expect(dead_code, reason = "another test draws what it heard as a tree")]
mod listen;
mod loops;
mod lost_answers;
mod mcp;
mod mcp_limits;
mod memories;
#[cfg(feature = "otlp")]
mod phoenix;
mod secrets;
mod shop;
mod spending;
mod teams;
mod traces;
mod world;
