//! The reference implementations with one defect each, of the kinds that real stores have had.

mod archive;
mod cache;
mod checkpointer;
mod database;
mod defect;
mod reading;
mod registry;
mod rows;
mod store;

pub(crate) use cache::{BrokenCache, CacheDefect};
pub(crate) use checkpointer::Broken;
pub(crate) use database::{BrokenDatabase, DatabaseDefect};
pub(crate) use defect::Defect;
pub(crate) use registry::{BrokenRegistry, RegistryDefect};
pub(crate) use store::{BrokenStore, StoreDefect};
