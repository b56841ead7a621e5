//! The server over stores in memory, called as its clients call it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod a2a;
mod ag_ui;
mod answers;
mod audit;
mod audit_tampering;
mod authorisation;
mod branches;
mod clock_changes;
mod connections;
mod context;
mod crons;
mod erasure;
mod files;
mod idempotency;
mod injections;
mod kit;
mod lost_tokens;
mod mcp;
mod openapi;
mod operations;
mod own_endpoints;
mod owners;
mod protocol;
mod quotas;
mod receiver;
mod retention;
mod routes;
mod schema;
mod size_reports;
mod strangers;
mod streams;
mod subgraphs;
mod tenants;
mod tokens;
mod upgrade;
mod webhooks;
