//! The real program, as a person or a script uses it.

mod acceptance;
mod commands;
mod kit;
mod local_model;
