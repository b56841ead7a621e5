//! Reports of sizes: what they sum up, of which threads, and in which order.

use serde_json::json;
use superstep_core::ThreadId;
use superstep_core::checkpoint::{
    Checkpointer, Commit, NewThread, Page, SizeGroup, SizeQuery, SizeRow, StoredSize,
};

use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{ALL, Owner, answer, interrupt_id, listing, thread_of};

pub(super) async fn sizes_are_those_of_what_is_stored(db: &dyn Checkpointer) -> Verdict {
    let wanted = fill(db).await?;
    for by in GROUPS {
        let query = SizeQuery {
            by,
            page: ALL,
            ..SizeQuery::default()
        };
        let found = db.sizes(&query).await?;
        ensure_eq!(found, query.report(wanted.clone()), "sizes by {by:?}");
    }
    let largest = wanted.iter().max_by_key(|row| row.bytes());
    let has_all = |row: &SizeRow| {
        let kinds = [row.entries, row.snapshots, row.records, row.interrupts];
        kinds.iter().all(|kind| kind.count > 1)
    };
    ensure!(
        largest.is_some_and(has_all),
        "the suite compares nothing: {largest:?}"
    );
    Ok(())
}

pub(super) async fn sizes_are_of_one_tenant_or_thread(db: &dyn Checkpointer) -> Verdict {
    let all = fill(db).await?;
    for by in GROUPS {
        for tenant in ["", "acme", "acme-corp", "acm", "ACME", "acme%", "a\0b"] {
            let query = SizeQuery {
                tenant: Some(tenant.to_owned()),
                by,
                page: ALL,
                ..SizeQuery::default()
            };
            let own = all.iter().filter(|row| row.tenant == tenant).cloned();
            let found = db.sizes(&query).await?;
            ensure_eq!(found, query.report(own), "sizes of tenant {tenant:?}");
        }
        for row in &all {
            for (tenant, is_found) in [
                (None, true),
                (Some(row.tenant.clone()), true),
                (Some("stranger".to_owned()), false),
            ] {
                let query = SizeQuery {
                    tenant,
                    thread: row.thread.clone(),
                    by,
                    page: ALL,
                };
                let wanted = Some(row.clone()).filter(|_| is_found);
                let found = db.sizes(&query).await?;
                ensure_eq!(found, query.report(wanted), "sizes of {:?}", query.thread);
            }
        }
        let nowhere = SizeQuery {
            thread: Some(thread_of("acme", "nowhere")),
            by,
            ..SizeQuery::default()
        };
        ensure_eq!(db.sizes(&nowhere).await?, vec![], "sizes of no thread");
    }
    Ok(())
}

pub(super) async fn sizes_by_page(db: &dyn Checkpointer) -> Verdict {
    let all = fill(db).await?;
    for limit in 0..=7 {
        for offset in 0..=7 {
            let query = SizeQuery {
                by: SizeGroup::Thread,
                page: Page { limit, offset },
                ..SizeQuery::default()
            };
            let found = db.sizes(&query).await?;
            ensure_eq!(
                found,
                query.report(all.clone()),
                "{limit} sizes behind {offset}"
            );
        }
    }
    Ok(())
}

const GROUPS: [SizeGroup; 3] = [SizeGroup::Tenant, SizeGroup::Graph, SizeGroup::Thread];

/// Makes threads of several tenants, graphs and sizes, and returns what each takes, according to its archive.
async fn fill(db: &dyn Checkpointer) -> Result<Vec<SizeRow>, Fault> {
    let mut threads = Vec::new();
    for (tenant, name, graph, steps) in [
        ("", "a", "graph", 4),
        ("acme", "a", "other", 2),
        ("acme", "b", "graph", 20),
        ("acme-corp", "c", "graph", 1),
    ] {
        let id = thread_of(tenant, name);
        let mut owner = Owner::new(&id);
        let start = Commit {
            listing: Some(listing(graph, json!({}), json!({}))),
            ..owner.start()
        };
        owner.save(db, start).await?;
        owner.save_steps(db, steps).await?;
        threads.push(id);
    }
    // All kinds at once, of interrupts an open, an answered and a closed one.
    let id = thread_of("acme", "all");
    let mut owner = Owner::started_at(db, &id).await?;
    owner.save_steps(db, 40).await?;
    owner.save(db, owner.ask(&[1, 2, 3])).await?;
    db.answer(&id, &[answer(1, json!("yes")), answer(2, json!("no"))])
        .await?;
    let step = Commit {
        closed: vec![interrupt_id(1)],
        ..owner.step()
    };
    owner.save(db, step).await?;
    for n in 1..=3 {
        db.record(&owner.record(n, "step", json!("a result")))
            .await?;
    }
    threads.push(id);
    // Equal in size, so that their names decide.
    for name in ["empty-2", "empty-1"] {
        let id = thread_of("acme", name);
        db.create(&id, &NewThread::default()).await?;
        threads.push(id);
    }
    let deleted = Owner::started_at(db, &thread_of("acme", "deleted")).await?;
    db.delete(&deleted.thread).await?;

    let mut rows = Vec::new();
    for id in &threads {
        rows.push(size_of(db, id).await?);
    }
    Ok(rows)
}

async fn size_of(db: &dyn Checkpointer, id: &ThreadId) -> Result<SizeRow, Fault> {
    let archive = db.export(id).await?;
    Ok(SizeRow {
        tenant: id.tenant().to_owned(),
        graph: Some(archive.listing.graph),
        thread: Some(id.clone()),
        threads: 1,
        entries: StoredSize::of(archive.entries.iter().map(|entry| entry.body.len())),
        snapshots: StoredSize::of(archive.snapshots.iter().map(|stored| stored.body.len())),
        records: StoredSize::of(archive.records.iter().map(|record| record.body.len())),
        interrupts: StoredSize::of(archive.interrupts.iter().map(|found| found.body.len())),
    })
}
