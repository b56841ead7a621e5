//! The whole graph over a transport in memory that writes down every call.

mod extraction;
mod lab;
mod questions;
