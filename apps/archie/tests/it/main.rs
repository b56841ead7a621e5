//! The real program, as a person or a script uses it.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod acceptance;
mod analyze_inquiry;
mod analyze_interview;
mod analyze_result;
mod approvals;
mod at_once;
mod atris;
mod book;
mod browser;
mod budget;
mod cluster;
mod commands;
mod crashes;
mod deaths;
mod difficult_servers;
mod docs;
mod encryption;
mod erase;
mod evaluation;
mod evil;
mod exit_codes;
mod fork_models;
mod hostile_folder;
mod http_agents;
mod inbox_many;
mod inbox_screen;
mod kit;
mod linear;
mod local_model;
mod mail;
mod many;
mod mcp;
mod model_server;
mod no_network;
mod old_database;
mod otlp;
mod printed;
mod readmes;
mod serve;
mod setup;
mod sheet;
mod snapshots;
mod terminal;
mod test_cases;
mod tmux;
mod tokens;
mod trace_export;
mod undo;
mod web;
mod widths;
