//! What nodes bring along: errors of other crates, codes of their own, shared dependencies, the long-term store.

use std::num::ParseIntError;
use std::sync::Arc;

use superstep::label::{Label, Labeled};
use superstep::prelude::*;
use superstep::store::{MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store};
use superstep::{RetryPolicy, Timestamp};

use crate::kit::{Log, LogUpdate, memory, wrote};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn one(
    name: &'static str,
    node: impl Node<Log>,
    then: impl FnOnce(superstep::GraphBuilder<Log>) -> superstep::GraphBuilder<Log>,
) -> Graph<Log> {
    let graph = Graph::builder(name).node("node", node);
    then(graph.edge(START, "node").edge("node", END))
        .build()
        .unwrap()
}

fn parse(text: &str) -> anyhow::Result<i64> {
    use anyhow::Context;
    text.parse()
        .with_context(|| format!("`{text}` is not a price"))
}

#[test]
fn every_kind_of_error_converts_and_keeps_its_sources() {
    fn all(which: u8) -> Result<(), NodeError> {
        match which {
            0 => "x".parse::<i64>().map(drop)?,
            1 => parse("x").map(drop)?,
            2 => Err::<(), BoxError>("x".parse::<i64>().unwrap_err().into())?,
            3 => None::<()>.ok_or("there is none")?,
            _ => Err(format!("number {which}"))?,
        }
        Ok(())
    }
    let messages: Vec<String> = (0..5).map(|at| all(at).unwrap_err().to_string()).collect();
    let digits = "invalid digit found in string";
    assert_eq!(messages[0], digits);
    assert_eq!(messages[1], format!("`x` is not a price: {digits}"));
    assert_eq!(messages[2], digits);
    assert_eq!(messages[3], "there is none");
    assert_eq!(messages[4], "number 4");
    assert!(
        all(0)
            .unwrap_err()
            .downcast_ref::<ParseIntError>()
            .is_some()
    );
    assert!(
        all(2)
            .unwrap_err()
            .downcast_ref::<ParseIntError>()
            .is_some()
    );
    assert!(all(1).unwrap_err().source().unwrap().source().is_some());
}

#[tokio::test]
async fn a_code_of_a_node_reaches_its_error_handler_and_the_result() {
    async fn pays(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Err(NodeError::fatal("the bank said no").with_code("card-declined"))
    }
    let runtime = memory();
    let thread = runtime
        .thread(&one("coded", pays, |graph| graph), "t")
        .unwrap();
    let result = thread.start(LogUpdate::default()).await.unwrap();
    let Outcome::Failed(failures) = &result.outcome else {
        panic!("{result:?}")
    };
    assert_eq!(failures[0].code.as_deref(), Some("card-declined"));
    assert_eq!(failures[0].message, "the bank said no");
    assert!(
        failures[0]
            .to_string()
            .ends_with("the bank said no [card-declined]")
    );
    let stored = thread.result().await.unwrap().unwrap();
    assert_eq!(stored.outcome, result.outcome);
    let json = serde_json::to_value(&stored).unwrap();
    assert_eq!(json["failures"][0]["code"], "card-declined");
    assert_eq!(json["failures"][0]["kind"], "node-fatal");

    async fn handles(failed: Failed<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Ok(match failed.failure.code.as_deref() {
            Some("card-declined") => wrote("asked for another card"),
            other => wrote(format!("{other:?}")),
        })
    }
    let handled = one("handled", pays, |graph| {
        graph.on_error("node", &[END], handles)
    });
    let result = runtime.thread(&handled, "h").unwrap();
    let result = result.start(LogUpdate::default()).await.unwrap();
    assert_eq!(result.state.ran, ["asked for another card"]);
}

#[tokio::test]
async fn a_code_survives_a_retry_that_another_process_makes() {
    async fn fails(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Err(NodeError::retryable("\u{1}busy").with_code("bank busy!"))
    }
    let graph = one("retried", fails, |graph| {
        graph.retry("node", RetryPolicy::attempts(2))
    });
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let elsewhere = Runtime::new(store).thread(&graph, "t").unwrap();
    let result = elsewhere.result().await.unwrap().unwrap();
    let Outcome::Failed(failures) = result.outcome else {
        panic!("{result:?}")
    };
    assert_eq!(failures[0].code.as_deref(), Some("bank-busy-"));
    assert_eq!(failures[0].message, "\u{1}busy");
    assert_eq!(failures[0].attempts, 2);
}

/// What the nodes of a graph share.
struct Shop {
    name: String,
}

impl Shop {
    async fn greet(self: Arc<Self>, _: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Ok(wrote(format!("welcome to {}", self.name)))
    }
}

#[tokio::test]
async fn nodes_share_dependencies() {
    let shop = Arc::new(Shop {
        name: "Corner".to_owned(),
    });
    let graph = one("shop", with(&shop, Shop::greet), |graph| graph);
    let thread = memory().thread(&graph, "t").unwrap();
    let result = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(result.state.ran, ["welcome to Corner"]);
}

async fn remembers(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    let visits = cx.store(["visits", "ada"])?;
    let count: u32 = visits.get("count").await?.unwrap_or_default();
    visits.put("count", count + 1).await?;
    Ok(wrote(format!("{count}")))
}

#[tokio::test]
async fn facts_in_the_store_outlive_a_thread() {
    let runtime = Runtime::builder(Memory::default())
        .store(MemoryStore::default())
        .build();
    let graph = one("remembers", remembers, |graph| graph);
    for (thread, seen) in [("a", "0"), ("b", "1"), ("c", "2")] {
        let thread = runtime.thread(&graph, thread).unwrap();
        let result = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(result.state.ran, [seen]);
    }
}

/// Reads and writes through the store itself, in a namespace that names another tenant.
async fn reaches_out(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    let store = cx.store(["visits"])?.inner()?;
    let namespace = Namespace::of_tenant("acme", ["visits", "ada"])?;
    let found = store.get(&namespace, "count", Timestamp(0)).await?;
    let put = PutItem {
        namespace,
        key: "count".to_owned(),
        value: "taken".into(),
        ttl: None,
    };
    store.put(&put, Timestamp(0)).await?;
    let everything = Search {
        tenant: "acme".to_owned(),
        ..Search::default()
    };
    let listed = store.search(&everything, Timestamp(0)).await?;
    let all = NamespaceQuery::default();
    let namespaces = store.namespaces(&all, Timestamp(0)).await?;
    let tenants = listed.iter().map(|item| item.namespace.tenant());
    let tenants: Vec<&str> = tenants
        .chain(namespaces.iter().map(Namespace::tenant))
        .collect();
    Ok(wrote(format!("{} {tenants:?}", found.is_some())))
}

#[tokio::test]
async fn nodes_use_the_store_of_their_tenant() {
    let runtime = Runtime::builder(Memory::default())
        .store(MemoryStore::default())
        .build();
    let remembers = one("remembers", remembers, |graph| graph);
    let reaches_out = one("reaches_out", reaches_out, |graph| graph);
    for (graph, thread, seen) in [
        (&remembers, "acme/a", "0"),
        (&remembers, "acme/b", "1"),
        (&remembers, "other/a", "0"),
        (&remembers, "unnamed", "0"),
        (&reaches_out, "third/a", r#"false ["third", "third"]"#),
        (&remembers, "acme/c", "2"),
    ] {
        let thread = runtime.thread(graph, thread).unwrap();
        let result = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(result.state.ran, [seen]);
    }
}

#[tokio::test]
async fn without_a_store_a_node_fails_with_what_to_do() {
    let graph = one("remembers", remembers, |graph| graph);
    let thread = memory().thread(&graph, "t").unwrap();
    let result = thread.start(LogUpdate::default()).await.unwrap();
    let Outcome::Failed(failures) = result.outcome else {
        panic!("{result:?}")
    };
    assert!(
        failures[0]
            .message
            .contains("Runtime::builder(..).store(..)")
    );
    assert_eq!(failures[0].kind.code(), "node-fatal");
}

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Mail {
    body: Option<Labeled<String>>,
    plain: Option<String>,
    summary: Option<Labeled<String>>,
}

#[tokio::test]
async fn a_fact_keeps_the_labels_of_what_its_node_had_read() {
    async fn stores(mail: View<Mail>, cx: NodeCx) -> Result<MailUpdate, NodeError> {
        if let Some(body) = &mail.body {
            let body = body.read(&cx).clone();
            cx.store(["mail"])?.put("last", body).await?;
        }
        Ok(MailUpdate::default())
    }
    async fn reads(_: View<Mail>, cx: NodeCx) -> Result<MailUpdate, NodeError> {
        let last: Option<String> = cx.store(["mail"])?.get("last").await?;
        let listed: Vec<(String, String)> = cx.store(["mail"])?.list(10).await?;
        assert_eq!(listed.len(), 1);
        let summary = last.map(|last| cx.labeled(last));
        Ok(MailUpdate::default().summary(summary))
    }
    let store = MemoryStore::default();
    let runtime = Runtime::builder(Memory::default())
        .store(store.clone())
        .build();
    let graph = Graph::builder("mail")
        .node("stores", stores)
        .node("reads", reads)
        .edge(START, "stores")
        .edge("stores", "reads")
        .edge("reads", END)
        .build()
        .unwrap();
    let body = Labeled::new("Buy now!".to_owned(), Label::UNTRUSTED);
    let thread = runtime.thread(&graph, "t").unwrap();
    let result = thread
        .start(MailUpdate::default().body(Some(body.clone())))
        .await;
    assert_eq!(result.unwrap().state.summary, Some(body));
    // A reader that knows nothing of labels does not take the fact for a plain one.
    let mail = Namespace::new(["mail"]).unwrap();
    let raw = store
        .get(&mail, "last", Timestamp(0))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(raw.value["__value"], "Buy now!");
}

#[tokio::test]
async fn a_fact_that_looks_like_one_with_labels_reads_back_as_it_was() {
    let test = superstep::TestCx::new();
    let facts = test.cx().store(["facts"]).unwrap();
    let odd = serde_json::json!({ "__labels": ["what is this"], "__value": 1 });
    facts.put("odd", &odd).await.unwrap();
    assert_eq!(
        facts.get::<serde_json::Value>("odd").await.unwrap(),
        Some(odd)
    );
    let not_a_number = facts.put("nan", f64::NAN).await.unwrap_err();
    assert!(!not_a_number.kind().may_retry());
}

#[test]
fn an_empty_code_is_no_code() {
    assert_eq!(NodeError::fatal("no").with_code("").code(), None);
}
