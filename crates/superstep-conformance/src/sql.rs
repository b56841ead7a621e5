//! What a SQL store's tests can do to its database: for [`sql`](crate::sql()), which holds our own stores to what they share
//! beside the rules of the traits.

use superstep_core::checkpoint::{BoxFuture, Checkpointer};
use superstep_core::store::Store;

/// A database with a store in it, which a test can also reach beside the store.
pub trait Database: Send + Sync + 'static {
    /// The store.
    fn store(&self) -> &dyn Checkpointer;

    /// The long-term store in the same database.
    fn items(&self) -> &dyn Store;

    /// Changes a byte of an item's value beside the store, as a failing disk would: nothing else in the database notices.
    fn flip_byte_of_item<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()>;

    /// Runs a statement that every dialect has.
    fn execute<'a>(&'a self, statement: &'a str) -> BoxFuture<'a, ()>;

    /// How many rows a table has.
    fn rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, u64>;

    /// How large the database is.
    fn bytes(&self) -> BoxFuture<'_, u64>;

    /// The table that has the lines of the list of threads.
    fn listing_table(&self) -> &'static str;

    /// What things may cost.
    fn costs(&self) -> Costs;
}

/// How many bytes something may take in a database.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// A thread that waits for an answer, with a state of 300 bytes.
    pub parked_thread: u64,
    /// The entries of a long thread, 400 of 270 bytes.
    pub entries_of_108_000_bytes: u64,
}
