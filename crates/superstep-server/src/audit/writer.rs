//! Appends records to the logs of tenants. One task per server does so: what arrives while it writes is appended with one call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use superstep::__private::lock;
use superstep::Timestamp;
use superstep::checkpoint::CheckpointResult;
use superstep::error::CheckpointError;
use superstep::registry::{AuditHead, Registry};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::chain::{self, AuditKey, entries_after};

/// An entry before it has its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditRecord {
    pub(crate) at: Timestamp,
    pub(crate) principal: String,
    pub(crate) action: String,
    pub(crate) resource: String,
    /// JSON, without secrets.
    pub(crate) detail: String,
}

/// The audit logs of a server's tenants.
pub(crate) struct AuditLog {
    key: Option<AuditKey>,
    registry: Arc<dyn Registry>,
    jobs: mpsc::Sender<AppendJob>,
    /// The task that writes. It ends with this.
    writer: Mutex<JoinSet<()>>,
}

/// Records that are appended together.
struct AppendJob {
    tenant: String,
    records: Vec<AuditRecord>,
    /// Gets whether they were appended.
    done: oneshot::Sender<bool>,
}

impl AuditLog {
    /// Starts to write.
    pub(crate) fn start(registry: Arc<dyn Registry>, key: Option<AuditKey>) -> Self {
        let (jobs, waiting) = mpsc::channel(JOBS_MAX);
        let mut writer = JoinSet::new();
        writer.spawn(write_all(registry.clone(), key.clone(), waiting));
        Self {
            key,
            registry,
            jobs,
            writer: Mutex::new(writer),
        }
    }

    pub(super) fn registry(&self) -> &Arc<dyn Registry> {
        &self.registry
    }

    /// Returns the hash of something that the log must not contain itself, in hexadecimal.
    pub(super) fn hash_of(&self, bytes: &[u8]) -> String {
        let hash = chain::hash(self.key.as_ref(), bytes);
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Appends records to a tenant's log, and returns when they are stored.
    pub(crate) async fn append(
        &self,
        tenant: &str,
        records: Vec<AuditRecord>,
    ) -> CheckpointResult<()> {
        let done = self.send(tenant, records).await?;
        match done.await {
            Ok(true) => Ok(()),
            _ => Err(not_written()),
        }
    }

    /// Appends records to a tenant's log later.
    pub(crate) async fn append_later(&self, tenant: &str, records: Vec<AuditRecord>) {
        if self.send(tenant, records).await.is_err() {
            tracing::error!("an outcome was not written to the audit log");
        }
    }

    async fn send(
        &self,
        tenant: &str,
        records: Vec<AuditRecord>,
    ) -> CheckpointResult<oneshot::Receiver<bool>> {
        let (done, receiver) = oneshot::channel();
        let job = AppendJob {
            tenant: tenant.to_owned(),
            records,
            done,
        };
        let sent = self.jobs.send(job).await;
        sent.map_err(|_| not_written())?;
        Ok(receiver)
    }

    /// Waits until what was sent before is written.
    pub(crate) async fn flush(&self) {
        let flushed = async {
            if let Ok(done) = self.send("", Vec::new()).await {
                // Nothing is written, and so nothing can fail.
                let _ = done.await;
            }
        };
        if tokio::time::timeout(FLUSH_TIME_MAX, flushed).await.is_err() {
            tracing::error!("the end of the audit log was not written in time");
        }
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writers = lock(&self.writer).len();
        f.debug_struct("AuditLog")
            .field("writers", &writers)
            .finish_non_exhaustive()
    }
}

fn not_written() -> CheckpointError {
    CheckpointError::store("the audit log cannot be written")
}

async fn write_all(
    registry: Arc<dyn Registry>,
    key: Option<AuditKey>,
    mut waiting: mpsc::Receiver<AppendJob>,
) {
    // Ends of logs as this process knows them.
    let mut heads = BTreeMap::<String, AuditHead>::new();
    let mut jobs = Vec::new();
    while waiting.recv_many(&mut jobs, JOBS_AT_ONCE).await > 0 {
        let mut of_tenants = BTreeMap::<String, Vec<AppendJob>>::new();
        for job in jobs.drain(..) {
            of_tenants.entry(job.tenant.clone()).or_default().push(job);
        }
        if heads.len() > HEADS_MAX {
            heads.clear();
        }
        let appends = of_tenants.into_iter().map(|(tenant, jobs)| {
            let head = heads.remove(&tenant);
            let (registry, key) = (&registry, key.as_ref());
            async move {
                let records = jobs.iter().flat_map(|job| job.records.iter().cloned());
                let records: Vec<_> = records.collect();
                let appended = append(&**registry, key, &tenant, head, &records).await;
                if let Err(error) = &appended {
                    tracing::error!(?error, "the audit log cannot be written");
                }
                for job in jobs {
                    // Nobody may wait for it.
                    let _ = job.done.send(appended.is_ok());
                }
                Some((tenant, appended.ok()??))
            }
        });
        let appended = join_all(appends.collect::<Vec<_>>()).await;
        heads.extend(appended.into_iter().flatten());
    }
}

/// Appends records to the end of a tenant's log, wherever it is by then. Returns the new end; `None` if there are no records.
pub(super) async fn append(
    registry: &dyn Registry,
    key: Option<&AuditKey>,
    tenant: &str,
    known: Option<AuditHead>,
    records: &[AuditRecord],
) -> CheckpointResult<Option<AuditHead>> {
    if records.is_empty() {
        return Ok(known);
    }
    let mut head = match known {
        Some(head) => head,
        None => registry.audit_head(tenant).await?,
    };
    for _ in 0..TRIES {
        let entries = entries_after(head, key, tenant, records);
        let last = entries.last().map(|last| AuditHead {
            seq: last.seq,
            hash: last.hash,
        });
        let found = registry.append_audit(tenant, &entries).await?;
        if Some(found) == last {
            return Ok(last);
        }
        // Another server has appended first.
        head = found;
    }
    Err(CheckpointError::store(
        "other servers append to the audit log all the time",
    ))
}

/// Number of requests that may wait for their entries; others wait to wait.
const JOBS_MAX: usize = 1_024;
const JOBS_AT_ONCE: usize = 256;
/// How often to try if another server appends first each time.
const TRIES: u32 = 100;
const HEADS_MAX: usize = 10_000;
const FLUSH_TIME_MAX: Duration = Duration::from_secs(5);
