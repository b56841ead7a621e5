//! Defects of a checkpointer that shows or takes archives.

use superstep_core::checkpoint::format::Extensions;
use superstep_core::checkpoint::{
    Archive, ArchivedListing, CheckpointResult, Checkpointer as _, Head,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, ThreadId};

use super::{Broken, Defect};

impl Broken {
    /// The archive as the defect would have it, on its way out.
    fn bent_export(&self, mut archive: Archive) -> Archive {
        match self.defect {
            Defect::ExportCutAtAPage => {
                let cut = archive.entries.len().saturating_sub(1_000);
                archive.entries.drain(..cut);
            }
            Defect::ExportTorn => archive.head.seq = archive.head.seq.next(),
            Defect::ExportLosesSnapshots => archive.snapshots.clear(),
            _ => {}
        }
        archive
    }

    /// The archive as the defect would have it, on its way in.
    fn bent_import(&self, mut archive: Archive) -> Archive {
        match self.defect {
            Defect::ImportLosesRecords => archive.records.clear(),
            Defect::ImportLosesCancel => archive.cancel = false,
            Defect::ImportLosesListing => archive.listing = ArchivedListing::default(),
            Defect::ImportLosesDeadlines => {
                for question in &mut archive.interrupts {
                    question.deadline = None;
                }
            }
            Defect::ImportLosesEpoch => {
                archive.head.epoch = Epoch(1);
                for entry in &mut archive.entries {
                    entry.epoch = Epoch(1);
                }
            }
            Defect::ImportLosesSeen => archive.seen = archive.head.answers,
            _ => {}
        }
        archive
    }

    pub(super) async fn export_bent(&self, thread: &ThreadId) -> CheckpointResult<Archive> {
        let exported = self.inner.export(thread).await;
        if let Ok(archive) = exported {
            return Ok(self.bent_export(archive));
        }
        if self.is(Defect::ExportOfDeletedIsEmpty)
            && let Some(loaded) = self.inner.load(thread).await?
        {
            return Ok(empty(thread, loaded.head));
        }
        let tenants = self.tenants.lock().expect("no clause panics").clone();
        for tenant in tenants
            .iter()
            .filter(|_| self.is(Defect::ExportIgnoresTenant))
        {
            let elsewhere = ThreadId::of_tenant(tenant, thread.name()).expect("it was one before");
            if let Ok(found) = self.inner.export(&elsewhere).await {
                return Ok(found);
            }
        }
        exported
    }

    pub(super) async fn import_bent(
        &self,
        thread: &ThreadId,
        archive: &Archive,
    ) -> CheckpointResult<()> {
        let is_living = self.inner.export(thread).await.is_ok();
        if self.is(Defect::ImportTwiceRefused) && is_living
            || self.is(Defect::ImportNeedsEntries) && archive.entries.is_empty()
        {
            let thread = thread.clone();
            return Err(CheckpointError::ThreadExists { thread });
        }
        let thread = match self.is(Defect::ImportTakesAnyName) {
            true => &archive.thread,
            false => thread,
        };
        let archive = self.bent_import(archive.clone());
        match self.inner.import(thread, &archive).await {
            Err(CheckpointError::ThreadExists { .. }) if self.is(Defect::ImportReplaces) => {
                self.inner.delete(thread).await?;
                self.inner.import(thread, &archive).await
            }
            Err(CheckpointError::Format(_)) if self.is(Defect::ImportTakesDamage) => Ok(()),
            imported => imported,
        }
    }
}

fn empty(thread: &ThreadId, head: Head) -> Archive {
    Archive {
        thread: thread.clone(),
        head,
        seen: 0,
        cancel: false,
        listing: ArchivedListing::default(),
        entries: Vec::new(),
        snapshots: Vec::new(),
        records: Vec::new(),
        interrupts: Vec::new(),
        extensions: Extensions::default(),
    }
}
