//! The erasure of a tenant.

use std::fmt;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::checkpoint::{Checkpointer, Page, ThreadQuery};
use superstep::driver::{NodeCache, RequestQueue};
use superstep::error::CheckpointError;
use superstep::registry::{ErasedRows, Registry};
use superstep::store::{Search, Store, StoreError};
use superstep::{ThreadId, Timestamp};
use tokio::time::Instant;

use crate::audit::{AuditKey, ErasureLog};
use crate::auth::KEY_USED_FOR;
use crate::files::{ThreadFileError, ThreadFiles};

/// Where the data of tenants is.
pub struct TenantData<'a> {
    /// Threads with their history, interrupts and records.
    pub checkpointer: &'a dyn Checkpointer,
    /// Runs, assistants, crons, deliveries and keys.
    pub registry: &'a dyn Registry,
    /// The long-term store, if there is one.
    pub store: Option<&'a dyn Store>,
    /// Files of threads, if there are any.
    pub files: Option<&'a dyn ThreadFiles>,
    /// Requests to the workers of a cluster, if there is one.
    pub queue: Option<&'a dyn RequestQueue>,
    /// Results of cached nodes, if they are shared. A process that caches in its own memory clears its own.
    pub cache: Option<&'a dyn NodeCache>,
}

impl fmt::Debug for TenantData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantData")
            .field("has_store", &self.store.is_some())
            .field("has_files", &self.files.is_some())
            .finish_non_exhaustive()
    }
}

/// What [`erase_tenant`] deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedTenant {
    /// Whether a whole pass at the end found nothing more. If not, something still writes for the tenant: a caller whose credentials are
    /// valid, or a node in progress. Stop it, and erase again.
    pub is_complete: bool,
    /// Threads with everything that is stored under them.
    pub threads: u64,
    /// Files of threads.
    pub files: u64,
    /// Items of the long-term store.
    pub items: u64,
    /// Rows of the registry.
    pub rows: ErasedRows,
    /// Requests to the workers of a cluster, with the replies to them.
    pub requests: u64,
    /// Results of cached nodes.
    pub cached: u64,
}

/// Why a tenant was not erased as a whole. What was deleted stays deleted, and a second call deletes the rest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErasureError {
    /// The entry about the erasure cannot follow the last one of the tenant's audit log. Nothing was deleted.
    #[error(
        "the last entry of the audit log of tenant `{tenant}` was changed or is hashed under another key; erase the tenant with the \
         key of the server"
    )]
    AuditKey {
        /// The tenant.
        tenant: String,
    },
    /// The checkpointer or the registry failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The long-term store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files of a thread could not be deleted.
    #[error("the files of thread {thread} cannot be deleted: {source}")]
    Files {
        /// The thread.
        thread: ThreadId,
        /// Why.
        source: ThreadFileError,
    },
    /// The files of the tenant could not be deleted.
    #[error("the files of the tenant cannot be deleted: {source}")]
    TenantFiles {
        /// Why.
        source: ThreadFileError,
    },
}

/// Deletes everything of a tenant except its audit log: its API keys and crons first, so that nothing new begins, then what waits to be
/// executed, its files, its threads, its items and its cached results. Runs in progress lose their threads and stop.
///
/// Servers over the same stores may go on. They accept a deleted API key for some seconds more, and a node in progress writes until it
/// ends. So this repeats until a pass that begins after those seconds finds nothing, at most ten times; [`ErasedTenant::is_complete`]
/// says whether it came to that. Tokens of an OpenID Connect issuer are not stored anywhere: stop the issuer, or remove it from the
/// policy of the servers, before you erase the tenant.
///
/// The tenant's audit log has two entries about it by `principal`: one before anything is deleted, and one at the end with the
/// [receipt](ErasedTenant::receipt). An erasure without the second one was cut off, and is to be repeated. The key is that of the servers
/// ([`ServerBuilder::audit`](crate::ServerBuilder::audit)); with another one nothing is deleted.
pub async fn erase_tenant(
    data: &TenantData<'_>,
    tenant: &str,
    key: Option<&AuditKey>,
    (principal, now): (&str, Timestamp),
) -> Result<ErasedTenant, ErasureError> {
    let started = Instant::now();
    let log = ErasureLog {
        registry: data.registry,
        tenant,
        key,
        principal,
    };
    if !log.accepts_key().await? {
        let tenant = tenant.to_owned();
        return Err(ErasureError::AuditKey { tenant });
    }
    let began = log.begin(now).await?;
    let erased = erase_until_empty(data, tenant, now).await?;
    let took = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
    let ended = Timestamp(now.0.saturating_add(took));
    log.end(began, ended, erased.receipt(tenant, ended)).await?;
    Ok(erased)
}

/// Deletes until a pass finds nothing, or too many found something.
async fn erase_until_empty(
    data: &TenantData<'_>,
    tenant: &str,
    now: Timestamp,
) -> Result<ErasedTenant, ErasureError> {
    let mut erased = ErasedTenant::default();
    for _ in 0..PASSES_MAX {
        let pass = erase_once(data, tenant, now).await?;
        if pass == ErasedTenant::default() {
            erased.is_complete = true;
            break;
        }
        erased.add(&pass);
        tokio::time::sleep(BETWEEN_PASSES).await;
    }
    Ok(erased)
}

/// Deletes what is there now.
async fn erase_once(
    data: &TenantData<'_>,
    tenant: &str,
    now: Timestamp,
) -> Result<ErasedTenant, ErasureError> {
    let mut pass = ErasedTenant {
        rows: data.registry.erase_tenant(tenant).await?,
        ..ErasedTenant::default()
    };
    // Before the threads, so that no worker creates one again for a request that waits.
    if let Some(queue) = data.queue {
        pass.requests = queue.erase_tenant(tenant).await?;
    }
    if let Some(files) = data.files {
        let deleted = files.delete_tenant(tenant).await;
        pass.files = deleted.map_err(|source| ErasureError::TenantFiles { source })?;
    }
    pass.threads = erase_threads(data, tenant).await?;
    if let Some(store) = data.store {
        pass.items = erase_items(store, tenant, now).await?;
    }
    if let Some(cache) = data.cache {
        pass.cached = cache.clear_tenant(tenant).await?;
    }
    Ok(pass)
}

impl ErasedTenant {
    /// Returns what to keep as evidence that the tenant was erased: how much of each kind it was, as JSON.
    pub fn receipt(&self, tenant: &str, at: Timestamp) -> Json {
        let rows = &self.rows;
        json!({
            "tenant": tenant,
            "erasedAt": at.0,
            "complete": self.is_complete,
            "threads": self.threads,
            "files": self.files,
            "items": self.items,
            "runs": rows.runs,
            "assistants": rows.assistants,
            "crons": rows.crons,
            "deliveries": rows.deliveries,
            "apiKeys": rows.api_keys,
            "requestKeys": rows.request_keys,
            "requests": self.requests,
            "cachedResults": self.cached,
        })
    }

    fn add(&mut self, pass: &Self) {
        self.threads += pass.threads;
        self.files += pass.files;
        self.items += pass.items;
        self.requests += pass.requests;
        self.cached += pass.cached;
        let (rows, more) = (&mut self.rows, &pass.rows);
        rows.runs += more.runs;
        rows.assistants += more.assistants;
        rows.crons += more.crons;
        rows.deliveries += more.deliveries;
        rows.api_keys += more.api_keys;
        rows.request_keys += more.request_keys;
    }
}

async fn erase_threads(data: &TenantData<'_>, tenant: &str) -> Result<u64, ErasureError> {
    let query = ThreadQuery {
        tenant: tenant.to_owned(),
        page: FIRST,
        ..ThreadQuery::default()
    };
    let mut erased = 0;
    for _ in 0..PAGES_MAX {
        let page = data.checkpointer.threads(&query).await?;
        if page.is_empty() {
            break;
        }
        for row in page {
            let thread = row.thread;
            // First, so that after a failure the thread is still listed; and last, because a run may have written one in between.
            erase_files(data, &thread).await?;
            data.checkpointer.delete(&thread).await?;
            erase_files(data, &thread).await?;
            erased += 1;
        }
    }
    Ok(erased)
}

async fn erase_files(data: &TenantData<'_>, thread: &ThreadId) -> Result<(), ErasureError> {
    let Some(files) = data.files else {
        return Ok(());
    };
    let deleted = files.delete_all(thread).await;
    deleted.map_err(|source| ErasureError::Files {
        thread: thread.clone(),
        source,
    })
}

async fn erase_items(store: &dyn Store, tenant: &str, now: Timestamp) -> Result<u64, ErasureError> {
    let search = Search {
        tenant: tenant.to_owned(),
        page: FIRST,
        ..Search::default()
    };
    let mut erased = 0;
    for _ in 0..PAGES_MAX {
        let page = store.search(&search, now).await?;
        if page.is_empty() {
            break;
        }
        for item in page {
            erased += u64::from(store.delete(&item.namespace, &item.key).await?);
        }
    }
    // No search finds what has expired.
    while store.sweep(now, SWEPT).await? >= u64::from(SWEPT) {}
    Ok(erased)
}

/// What is listed is deleted, so the first page is always the next one.
const FIRST: Page = Page {
    limit: 100,
    offset: 0,
};
/// Number of pages of threads, and of items, that one pass deletes: a million of each.
const PAGES_MAX: usize = 10_000;
/// Number of expired items that are deleted at once.
const SWEPT: u32 = 1_000;
/// Number of passes before a tenant that is still written to is given up.
const PASSES_MAX: usize = 10;
/// Longer than a server uses a key that was deleted elsewhere.
const BETWEEN_PASSES: Duration = KEY_USED_FOR.saturating_add(Duration::from_secs(1));
