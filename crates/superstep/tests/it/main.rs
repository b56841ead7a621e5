//! The local driver, from outside.

mod smoke;
