//! A checkpointer in front of another one: it says what is its own, and [`forward!`](crate::forward!) writes the rest.

pub use superstep_core::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Commit, ExpiredThread, Glance, History,
    InterruptQuery, InterruptRow, Loaded, NewThread, OverdueCursor, RecordWrite, Saved, SizeQuery,
    SizeRow, StoredBody, ThreadAnnotation, ThreadQuery, ThreadRow, UnfinishedThread,
};
pub use superstep_core::{Epoch, Seq, TaskId, ThreadId, Timestamp};

/// Writes operations of a [`Checkpointer`](superstep_core::checkpoint::Checkpointer) that do what the one in the field
/// `inner` does. With `through`, each goes through a method of that name, which is given the work and may do something
/// before it, after it, or instead of it.
///
/// An operation that is neither written nor named does not compile, so nobody forgets one that is new. The exception is
/// `answer_and_load`, which without either is the `answer` and the `load` of the wrapper.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use superstep_conformance::{block_on, checkpointer, forward};
/// use superstep_core::ThreadId;
/// use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, Memory};
///
/// /// Counts what is written, and deletes nothing.
/// struct Hoard {
///     inner: Memory,
///     writes: AtomicU64,
/// }
///
/// impl Hoard {
///     fn counted<T>(&self, work: T) -> T {
///         self.writes.fetch_add(1, Ordering::Relaxed);
///         work
///     }
/// }
///
/// impl Checkpointer for Hoard {
///     fn delete<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
///         Box::pin(async { Ok(()) })
///     }
///
///     forward! { through counted: create annotate save record answer request_cancel renew copy prune expire import }
///     forward! { load load_at entries glance unfinished threads count_threads sizes interrupts overdue expired export forget }
/// }
///
/// let hoard = async || Hoard { inner: Memory::new(), writes: AtomicU64::new(0) };
/// let report = block_on(checkpointer(hoard));
/// assert!(report.failed.iter().any(|(clause, _)| *clause == "admin::delete_leaves_nothing"));
/// ```
// A trait with methods that forward would need a blanket impl of `Checkpointer`, which only core could have.
#[macro_export]
macro_rules! forward {
    (through $hook:ident: $($operation:ident)+) => {
        $($crate::forward! { @$operation $hook })+
    };
    ($($operation:ident)+) => {
        $($crate::forward! { @$operation })+
    };

    (@create $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            create(thread: &'a $crate::forward::ThreadId, new: &'a $crate::forward::NewThread) -> bool
        }
    };
    (@annotate $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            annotate(thread: &'a $crate::forward::ThreadId, change: &'a $crate::forward::ThreadAnnotation) -> bool
        }
    };
    (@save $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, save(commit: &'a $crate::forward::Commit) -> $crate::forward::Saved }
    };
    (@record $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, record(record: &'a $crate::forward::RecordWrite) -> Vec<u8> }
    };
    (@answer $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            answer(thread: &'a $crate::forward::ThreadId, answers: &'a [$crate::forward::Answer]) -> ()
        }
    };
    (@answer_and_load $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            answer_and_load(thread: &'a $crate::forward::ThreadId, answers: &'a [$crate::forward::Answer])
                -> Option<$crate::forward::Loaded>
        }
    };
    (@load $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, load(thread: &'a $crate::forward::ThreadId) -> Option<$crate::forward::Loaded> }
    };
    (@load_at $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            load_at(thread: &'a $crate::forward::ThreadId, seq: $crate::forward::Seq) -> $crate::forward::History
        }
    };
    (@entries $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            entries(thread: &'a $crate::forward::ThreadId, after: $crate::forward::Seq, limit: u32)
                -> Vec<$crate::forward::StoredBody>
        }
    };
    (@glance $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            glance(thread: &'a $crate::forward::ThreadId, task: Option<$crate::forward::TaskId>)
                -> Option<$crate::forward::Glance>
        }
    };
    (@request_cancel $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, request_cancel(thread: &'a $crate::forward::ThreadId) -> () }
    };
    (@unfinished $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            unfinished(after: Option<&'a $crate::forward::ThreadId>, limit: u32)
                -> Vec<$crate::forward::UnfinishedThread>
        }
    };
    (@renew $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            renew(
                owned: &'a [($crate::forward::ThreadId, $crate::forward::Epoch)],
                lease: $crate::forward::Timestamp
            ) -> ()
        }
    };
    (@threads $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            threads(query: &'a $crate::forward::ThreadQuery) -> Vec<$crate::forward::ThreadRow>
        }
    };
    (@count_threads $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, count_threads(query: &'a $crate::forward::ThreadQuery) -> u64 }
    };
    (@sizes $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            sizes(query: &'a $crate::forward::SizeQuery) -> Vec<$crate::forward::SizeRow>
        }
    };
    (@interrupts $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            interrupts(query: &'a $crate::forward::InterruptQuery) -> Vec<$crate::forward::InterruptRow>
        }
    };
    (@overdue $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            overdue(
                now: $crate::forward::Timestamp,
                after: Option<&'a $crate::forward::OverdueCursor>,
                limit: u32
            ) -> Vec<$crate::forward::InterruptRow>
        }
    };
    (@copy $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            copy(
                from: &'a $crate::forward::ThreadId,
                upto: Option<$crate::forward::Seq>,
                to: &'a $crate::forward::ThreadId
            ) -> ()
        }
    };
    (@delete $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, delete(thread: &'a $crate::forward::ThreadId) -> () }
    };
    (@forget $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, forget(thread: &'a $crate::forward::ThreadId) -> () }
    };
    (@prune $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, prune(thread: &'a $crate::forward::ThreadId, keep: u32) -> u64 }
    };
    (@expire $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, expire(before: $crate::forward::Timestamp, limit: u32) -> u64 }
    };
    (@expired $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            expired(
                now: $crate::forward::Timestamp,
                after: Option<&'a $crate::forward::ExpiredThread>,
                limit: u32
            ) -> Vec<$crate::forward::ExpiredThread>
        }
    };
    (@export $($hook:ident)?) => {
        $crate::forward! { @method $($hook)?, export(thread: &'a $crate::forward::ThreadId) -> $crate::forward::Archive }
    };
    (@import $($hook:ident)?) => {
        $crate::forward! {
            @method $($hook)?,
            import(thread: &'a $crate::forward::ThreadId, archive: &'a $crate::forward::Archive) -> ()
        }
    };

    (@method $($hook:ident)?, $operation:ident($($given:ident: $of:ty),+) -> $told:ty) => {
        fn $operation<'a>(
            &'a self,
            $($given: $of),+
        ) -> $crate::forward::BoxFuture<'a, $crate::forward::CheckpointResult<$told>> {
            let work = self.inner.$operation($($given),+);
            $(let work = self.$hook(work);)?
            work
        }
    };
}
