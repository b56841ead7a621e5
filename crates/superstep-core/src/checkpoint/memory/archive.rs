//! Exports threads in memory as archives, and imports them.

use crate::checkpoint::format::Extensions;
use crate::checkpoint::seal::Seal;
use crate::checkpoint::{
    Archive, ArchivedEntry, ArchivedInterrupt, ArchivedListing, CheckpointResult, InterruptRow,
};
use crate::error::CheckpointError;
use crate::ids::{Epoch, ThreadId};

use super::{Listed, LogEntry, Memory, StoredInterrupt, Thread, Threads, living};

impl Memory {
    /// Adds a thread in the form that [`Memory::stored`] returned, and returns its id.
    pub(in crate::checkpoint) fn restore(&self, bytes: &[u8]) -> CheckpointResult<ThreadId> {
        // Not checked like an archive from outside: the seal says that the bytes are the written ones, and a deleted thread is
        // stored too.
        let archive: Archive = Seal::of_archive().read(bytes)?;
        archive.extensions.check(&[])?;
        let mut thread = restored(&archive, archive.head.epoch);
        thread.lease = archive.extensions.lease();
        thread.listing.lifetime = archive.extensions.lifetime();
        self.lock().insert(archive.thread.clone(), thread);
        Ok(archive.thread)
    }

    /// Returns all of a thread as bytes: an archive that also has the lease and the lifetime, and of a deleted thread the epoch.
    /// `None` if there is no such thread.
    pub(in crate::checkpoint) fn stored(&self, id: &ThreadId) -> Option<Vec<u8>> {
        let threads = self.lock();
        let thread = threads.get(id)?;
        let mut archive = archived(thread, id);
        archive.extensions =
            Extensions::of_lease(thread.lease).with_lifetime(thread.listing.lifetime);
        Some(archive.to_bytes())
    }
}

pub(super) fn export(threads: &Threads, id: &ThreadId) -> CheckpointResult<Archive> {
    Ok(archived(living(threads, id)?, id).checked()?)
}

pub(super) fn import(
    threads: &mut Threads,
    id: &ThreadId,
    archive: &Archive,
) -> CheckpointResult<()> {
    archive.check_for(id)?;
    let epoch = match threads.get(id) {
        None => archive.head.epoch,
        Some(former) if !former.is_living() => archive.epoch_after(former.head.epoch),
        Some(thread) if archive.is_same_thread(&archived(thread, id)) => return Ok(()),
        Some(_) => return Err(CheckpointError::ThreadExists { thread: id.clone() }),
    };
    threads.insert(id.clone(), restored(archive, epoch));
    Ok(())
}

fn archived(thread: &Thread, id: &ThreadId) -> Archive {
    let mut interrupts: Vec<_> = (thread.interrupts())
        .map(|question| ArchivedInterrupt::new(question.row.clone(), question.deadline))
        .collect();
    interrupts.sort_by_key(|question| question.id);
    let entry = |(&seq, entry): (_, &LogEntry)| ArchivedEntry {
        seq,
        epoch: entry.epoch,
        body: entry.body.clone(),
    };
    Archive {
        thread: id.clone(),
        head: thread.head,
        seen: thread.answers_seen,
        cancel: thread.cancel,
        listing: ArchivedListing {
            graph: thread.listing.graph.clone(),
            metadata: thread.listing.metadata.clone(),
            values: thread.listing.values.clone(),
            created: thread.created,
            updated: thread.updated,
        },
        entries: thread.log.iter().map(entry).collect(),
        snapshots: thread.snapshots().collect(),
        records: thread.record_rows(),
        interrupts,
        extensions: Extensions::default(),
    }
}

fn restored(archive: &Archive, epoch: Epoch) -> Thread {
    let listing = &archive.listing;
    let mut thread = Thread::new(listing.created);
    thread.updated = listing.updated;
    thread.listing = Listed {
        graph: listing.graph.clone(),
        metadata: listing.metadata.clone(),
        values: listing.values.clone(),
        lifetime: None,
    };
    thread.head = archive.head;
    thread.head.epoch = epoch;
    thread.cancel = archive.cancel;
    thread.answers_seen = archive.seen;
    for ArchivedEntry { seq, epoch, body } in archive.entries.iter().cloned() {
        thread.log.insert(seq, LogEntry { epoch, body });
    }
    for snapshot in archive.snapshots.iter().cloned() {
        thread.snapshots.insert(snapshot.seq, snapshot.body);
    }
    for record in archive.records.iter().cloned() {
        thread
            .records
            .insert((record.task, record.key), record.body);
    }
    for question in &archive.interrupts {
        let place = match question.closed {
            None => &mut thread.open,
            Some(_) => &mut thread.closed,
        };
        place.insert(question.id, asked(question, &archive.thread));
    }
    thread
}

fn asked(question: &ArchivedInterrupt, thread: &ThreadId) -> StoredInterrupt {
    let answer = question.answer.as_ref();
    StoredInterrupt {
        row: InterruptRow {
            thread: thread.clone(),
            id: question.id,
            seq: question.seq,
            asked_at: question.asked_at,
            body: question.body.clone(),
            answer: answer.map(|answer| answer.body.clone()),
            answered_by: answer.map_or_else(String::new, |answer| answer.by.clone()),
            answered_at: answer.map(|answer| answer.at),
            closed: question.closed,
        },
        deadline: question.deadline,
    }
}
