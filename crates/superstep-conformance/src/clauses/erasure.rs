//! The registry: the erasure of a tenant.

use superstep_core::ThreadId;
use superstep_core::registry::{AuditHead, ClaimedRequest, ErasedRows, Registry, RequestKey};

use super::audit::chain;
use super::crons::{all_crons, new_cron};
use super::deliveries::{all, end, new_delivery};
use super::keys::{key_id, new_key, request};
use super::registry::{STRANGERS, TENANTS, all_assistants, all_runs, new_assistant, new_run};
use crate::report::{Verdict, ensure, ensure_eq};
use crate::sample::{ALL, thread_of};

pub(super) async fn erased_tenant_has_nothing_but_its_audit_log(db: &dyn Registry) -> Verdict {
    fill(db, "acme", 10).await?;
    ensure_eq!(
        db.erase_tenant("acme").await?,
        EVERYTHING,
        "what was erased"
    );
    holds(db, "acme", 10, ErasedRows::default()).await?;
    let entries = db.audit("acme", 0, 10).await?;
    ensure_eq!(entries.len(), 3, "entries of the audit log");
    let again = db.erase_tenant("acme").await?;
    ensure_eq!(again, ErasedRows::default(), "what a second call erased");
    // The names are free again.
    fill_rows(db, "acme", 10).await?;
    holds(db, "acme", 10, EVERYTHING).await
}

pub(super) async fn others_keep_everything_when_a_tenant_is_erased(db: &dyn Registry) -> Verdict {
    for (n, tenant) in TENANTS.into_iter().enumerate() {
        fill(db, tenant, 10 + 10 * n as u8).await?;
    }
    db.erase_tenant("acme").await?;
    for tenant in STRANGERS
        .into_iter()
        .filter(|tenant| !TENANTS.contains(tenant))
    {
        let erased = db.erase_tenant(tenant).await?;
        ensure_eq!(erased, ErasedRows::default(), "rows of tenant `{tenant}`");
    }
    holds(db, "", 10, EVERYTHING).await?;
    holds(db, "acme", 20, ErasedRows::default()).await?;
    holds(db, "acme-corp", 30, EVERYTHING).await
}

/// What [`fill`] stores.
const EVERYTHING: ErasedRows = ErasedRows {
    runs: 2,
    assistants: 1,
    crons: 1,
    deliveries: 1,
    api_keys: 1,
    request_keys: 1,
};

/// Stores rows of every kind for a tenant, and entries of its audit log. The ids are from this number on.
async fn fill(db: &dyn Registry, tenant: &str, n: u8) -> Verdict {
    fill_rows(db, tenant, n).await?;
    db.append_audit(tenant, &chain(AuditHead::default(), 3))
        .await?;
    Ok(())
}

async fn fill_rows(db: &dyn Registry, tenant: &str, n: u8) -> Verdict {
    let thread: ThreadId = thread_of(tenant, "t");
    end(db, &thread, n, &[new_delivery(&thread, n, n)]).await?;
    db.create_run(&new_run(&thread, n + 1)).await?;
    let mut assistant = new_assistant(n);
    assistant.tenant = tenant.to_owned();
    db.create_assistant(&assistant).await?;
    let mut cron = new_cron(n);
    cron.tenant = tenant.to_owned();
    db.create_cron(&cron).await?;
    ensure!(
        db.create_api_key(&new_key(tenant, n)).await?,
        "a key was not stored"
    );
    let claimed = db.claim_request(&claim_of(tenant)).await?;
    ensure_eq!(claimed, ClaimedRequest::New, "the key of a request");
    Ok(())
}

fn claim_of(tenant: &str) -> RequestKey {
    RequestKey {
        tenant: tenant.to_owned(),
        ..request("once", 1, 0)
    }
}

/// Compares what a tenant has.
async fn holds(db: &dyn Registry, tenant: &str, n: u8, wanted: ErasedRows) -> Verdict {
    let keys = db.api_keys(tenant, ALL).await?.len() as u64;
    let found_by_id = u64::from(db.api_key(key_id(n)).await?.is_some());
    ensure_eq!(found_by_id, keys, "the key by its id, of tenant `{tenant}`");
    let is_claimed = db.claim_request(&claim_of(tenant)).await? != ClaimedRequest::New;
    let found = ErasedRows {
        runs: db.runs(&all_runs(tenant)).await?.len() as u64,
        assistants: db.assistants(&all_assistants(tenant)).await?.len() as u64,
        crons: db.crons(&all_crons(tenant)).await?.len() as u64,
        deliveries: db.deliveries(&all(tenant)).await?.len() as u64,
        api_keys: keys,
        request_keys: u64::from(is_claimed),
    };
    ensure_eq!(found, wanted, "the rows of tenant `{tenant}`");
    // It was claimed just now, so this takes it back.
    if !is_claimed {
        db.erase_tenant(tenant).await?;
    }
    Ok(())
}
