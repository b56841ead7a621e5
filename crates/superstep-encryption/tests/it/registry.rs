//! What users write into the rows of a registry is ciphertext there, and what it was outside.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_conformance::block_on;
use superstep_core::checkpoint::Page;
use superstep_core::registry::{
    AssistantChange, AssistantQuery, AttemptEnd, CronChange, CronQuery, DeliveryQuery,
    MemoryRegistry, NewAssistant, NewCron, NewDelivery, NewRun, Registry, RunEnd, RunQuery,
    RunStatus, WhenBusy,
};
use superstep_core::store::MemoryStore;
use superstep_core::{AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};
use superstep_encryption::EncryptedRegistry;

use crate::kit::encryption;
use crate::secrecy::MARKER;

fn secret(name: &str) -> Json {
    // In the order of the names: an encrypted object has that one, whichever it had before.
    json!({ MARKER: name, name: MARKER })
}

const NOW: Timestamp = Timestamp(1_000);

fn thread() -> ThreadId {
    ThreadId::of_tenant("acme", "t").unwrap()
}

fn run() -> NewRun {
    NewRun {
        id: RunId::from_bytes([1; 16]),
        thread: thread(),
        assistant: AssistantId::from_bytes([2; 16]),
        principal: "ada".to_owned(),
        request: MARKER.as_bytes().to_vec(),
        arguments: secret("arguments"),
        metadata: secret("metadata"),
        when_busy: WhenBusy::Enqueue,
        at: NOW,
        due: NOW,
    }
}

fn end() -> RunEnd {
    RunEnd {
        status: RunStatus::Error,
        error: secret("error"),
        at: NOW,
        deliveries: vec![NewDelivery {
            id: DeliveryId::from_bytes([3; 16]),
            run: run().id,
            thread: thread(),
            address: format!("https://example.com/{MARKER}"),
            event: "run.ended".to_owned(),
            body: secret("body").to_string(),
            at: NOW,
        }],
    }
}

fn assistant() -> NewAssistant {
    NewAssistant {
        tenant: "acme".to_owned(),
        id: AssistantId::from_bytes([2; 16]),
        graph: "graph".to_owned(),
        name: "name".to_owned(),
        description: MARKER.to_owned(),
        config: secret("config"),
        context: secret("context"),
        metadata: secret("metadata"),
        at: NOW,
    }
}

fn cron() -> NewCron {
    NewCron {
        tenant: "acme".to_owned(),
        id: CronId::from_bytes([4; 16]),
        assistant: AssistantId::from_bytes([2; 16]),
        thread: None,
        principal: String::new(),
        schedule: "* * * * *".to_owned(),
        zone: None,
        end: None,
        is_enabled: true,
        next: Some(NOW),
        arguments: secret("arguments"),
        metadata: secret("metadata"),
        at: NOW,
    }
}

/// Everything that callers can read, as text.
async fn text(registry: &dyn Registry) -> String {
    let tenant = "acme".to_owned();
    let page = Page::default();
    let runs = RunQuery {
        tenant: tenant.clone(),
        ..RunQuery::default()
    };
    let assistants = AssistantQuery {
        tenant: tenant.clone(),
        ..AssistantQuery::default()
    };
    let crons = CronQuery {
        tenant: tenant.clone(),
        ..CronQuery::default()
    };
    let deliveries = DeliveryQuery {
        tenant,
        ..DeliveryQuery::default()
    };
    let id = assistant().id;
    [
        format!("{:?}", registry.runs(&runs).await.unwrap()),
        format!("{:?}", registry.create_run(&run()).await.unwrap()),
        format!("{:?}", registry.assistants(&assistants).await.unwrap()),
        format!(
            "{:?}",
            registry.assistant_versions("acme", id, page).await.unwrap()
        ),
        format!("{:?}", registry.crons(&crons).await.unwrap()),
        format!("{:?}", registry.deliveries(&deliveries).await.unwrap()),
    ]
    .join("\n")
}

#[test]
fn rows_are_ciphertext_in_the_registry_and_what_they_were_outside() {
    block_on(async {
        // The same is written to a plain registry, to compare.
        let (plain, inner) = (MemoryRegistry::new(), Arc::new(MemoryRegistry::new()));
        let keys = encryption(Arc::new(MemoryStore::new()));
        let wrapped = EncryptedRegistry::new(inner.clone(), keys);
        for registry in [&plain as &dyn Registry, &wrapped] {
            registry.create_run(&run()).await.unwrap();
            let taken = registry.take_runs(NOW, 1).await.unwrap();
            assert_eq!(taken[0].request, run().request);
            assert_eq!(taken[0].row.arguments, run().arguments);
            assert!(registry.end_run("acme", run().id, &end()).await.unwrap());
            registry.create_assistant(&assistant()).await.unwrap();
            let change = AssistantChange {
                context: Some(json!({ "new": MARKER })),
                metadata: Some(json!({ "more": MARKER })),
                ..AssistantChange::default()
            };
            let changed = registry.change_assistant("acme", assistant().id, &change, NOW);
            changed.await.unwrap().unwrap();
            registry.create_cron(&cron()).await.unwrap();
            let change = CronChange {
                seen: NOW,
                metadata: Some(json!({ "more": MARKER })),
                ..CronChange::default()
            };
            let changed = registry.change_cron("acme", cron().id, &change, NOW);
            changed.await.unwrap();
            let taken = registry
                .take_deliveries(NOW, NOW.plus_ms(9), 1, &[])
                .await
                .unwrap();
            assert_eq!(taken[0].new, end().deliveries[0]);
            let dead = AttemptEnd::Dead {
                error: format!("500 {MARKER}"),
            };
            let attempt = taken[0].attempt();
            let ended = registry.end_attempt("acme", taken[0].new.id, attempt, &dead, NOW);
            assert!(ended.await.unwrap());
        }
        let shown = text(&wrapped).await;
        assert_eq!(shown, text(&plain).await);
        assert!(shown.matches(MARKER).count() > 20, "{shown}");
        let stored = text(&*inner).await;
        // `text` creates the run again, which returns the stored one.
        assert!(!stored.contains(MARKER), "{stored}");
        let digits: String = MARKER.bytes().map(|byte| format!("{byte}, ")).collect();
        assert!(!stored.contains(&digits), "a request in clear");
    });
}
