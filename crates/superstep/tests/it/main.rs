//! The local driver, from outside.

mod differs;
mod kit;
mod parity;
mod smoke;
