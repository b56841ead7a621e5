//! Interrupts a long read when its caller stops waiting for it. There are few reader threads, and without this each would read to the
//! end for a caller that is gone.

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, InterruptHandle};
use superstep_core::__private::lock;

use crate::fault::{Fault, SqliteError};

/// The caller's half: dropping it interrupts the read, or keeps it from beginning.
pub(crate) struct InterruptOnDrop(Arc<Mutex<Progress>>);

/// The half of the thread that reads.
pub(crate) struct Interruptible(Arc<Mutex<Progress>>);

enum Progress {
    /// The read has not begun, or is over.
    Idle,
    Reading(InterruptHandle),
    Abandoned,
}

/// Returns the two halves of a read.
pub(crate) fn interruptible() -> (InterruptOnDrop, Interruptible) {
    let progress = Arc::new(Mutex::new(Progress::Idle));
    (
        InterruptOnDrop(Arc::clone(&progress)),
        Interruptible(progress),
    )
}

impl Interruptible {
    /// Reads, unless the caller has stopped waiting.
    pub(crate) fn run<T>(
        self,
        connection: &Connection,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        {
            let mut progress = lock(&self.0);
            if matches!(*progress, Progress::Abandoned) {
                // No caller is left to see it.
                return Err(SqliteError::Closed.into());
            }
            *progress = Progress::Reading(connection.get_interrupt_handle());
        }
        let done = read(connection);
        // Under the lock, so that no interrupt can hit the next request on this connection.
        *lock(&self.0) = Progress::Idle;
        done
    }
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        let mut progress = lock(&self.0);
        if let Progress::Reading(handle) = &*progress {
            handle.interrupt();
        }
        *progress = Progress::Abandoned;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reader_pool::ReaderPool;
    use crate::work::Setting;

    /// Takes minutes if nothing interrupts it.
    const LONG: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
         SELECT count(*) FROM n";

    fn count(connection: &Connection, sql: &str) -> Result<i64, Fault> {
        Ok(connection.query_row(sql, [], |row| row.get(0))?)
    }

    #[tokio::test]
    async fn a_read_whose_caller_is_gone_frees_its_thread() {
        let readers = ReaderPool::new(vec![Connection::open_in_memory().unwrap()]).unwrap();
        let (caller, read) = interruptible();
        let long = move |db: &Connection| read.run(db, |db| count(db, LONG));
        let asked = readers.ask(Setting::Transaction, long);
        let second = tokio::time::timeout(Duration::from_secs(1), asked).await;
        assert!(second.is_err(), "the read was to take longer");
        drop(caller);
        // The same with one that has not begun.
        let (caller, read) = interruptible();
        drop(caller);
        let long = move |db: &Connection| read.run(db, |db| count(db, LONG));
        assert!(readers.ask(Setting::Transaction, long).await.is_err());

        let next = readers.ask(Setting::Transaction, |db| count(db, "SELECT 1"));
        assert_eq!(next.await.unwrap(), 1);
    }
}
