//! Crons over both clock changes of a year, with two servers over each store: each tick makes one run.
//!
//! At 2:30 there is no such time in one of these nights, and twice that time in the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry, RunQuery, RunRow, RunStatus};
use superstep::{Clock, Timestamp};
use superstep_server::Server;
use superstep_sqlite::Sqlite;
use tokio::time::{Instant, sleep};

use crate::crons::{path_of, threads_of};
use crate::kit::Client;
use crate::schema::Schema;

/// Saturdays before the clock changes in Berlin: 29 March and 25 October 2025, 12:00:30 UTC.
const SATURDAYS: [i64; 2] = [1_743_249_630_000, 1_761_393_630_000];

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug, Default, State)]
struct Visits {
    count: u64,
}

async fn visit(visits: View<Visits>, _: NodeCx) -> Result<VisitsUpdate, NodeError> {
    Ok(VisitsUpdate::default().count(visits.count + 1))
}

fn graph() -> Graph<Visits> {
    Graph::builder("visit")
        .node("visit", visit)
        .edge(START, "visit")
        .edge("visit", END)
        .inputs(["count"])
        .build()
        .unwrap()
}

/// How time passes for the servers.
enum Time {
    /// As tokio's clock does, which is paused, so the timers wake up by themselves. Only for a store that answers at once: while a
    /// task waits for anything else than time, the paused clock goes on to the next time-out.
    Paused { begin: i64, since: Instant },
    /// As the test sets it. Then it makes the timers look again, because they sleep by another clock.
    Set(Arc<AtomicI64>),
}

impl Time {
    fn paused(begin: i64) -> Self {
        let since = Instant::now();
        Self::Paused { begin, since }
    }

    fn set(begin: i64) -> Self {
        Self::Set(Arc::new(AtomicI64::new(begin)))
    }

    fn clock(&self) -> Clock {
        match self {
            Self::Paused { begin, since } => {
                let (begin, since) = (*begin, *since);
                Clock::new(move || {
                    let passed = i64::try_from(since.elapsed().as_millis()).unwrap();
                    Timestamp(begin + passed)
                })
            }
            Self::Set(now) => {
                let now = now.clone();
                Clock::new(move || Timestamp(now.load(Ordering::SeqCst)))
            }
        }
    }
}

/// Two servers over one store.
struct TwoServers {
    clients: [Client; 2],
    registry: Arc<dyn Registry>,
    time: Time,
    /// Paths of crons that never run. A change of one wakes the timer of the server that changes it.
    bells: [String; 2],
}

impl TwoServers {
    /// Starts each with its own connection.
    async fn start<C: Checkpointer, R: Registry + Clone>(stores: [(C, R); 2], time: Time) -> Self {
        let registry: Arc<dyn Registry> = Arc::new(stores[0].1.clone());
        let clock = time.clock();
        let serve = |(store, registry): (C, R)| {
            let runtime = Runtime::builder(store).clock(clock.clone()).build();
            let builder = Server::builder(runtime, Arc::new(registry));
            Client::of(builder.graph(graph().definition()))
        };
        let [first, second] = stores;
        let (first, second) = (serve(first).await, serve(second).await);
        let mut bells = [String::new(), String::new()];
        for (client, bell) in [&first, &second].into_iter().zip(&mut bells) {
            let mut never = cron_at("0 0 1 1 *");
            never["enabled"] = false.into();
            *bell = path_of(&client.post("/runs/crons", never).await.ok());
        }
        Self {
            clients: [first, second],
            registry,
            time,
            bells,
        }
    }

    /// Lets time pass, and what is due happen.
    async fn pass(&self, time: Duration) {
        match &self.time {
            Time::Paused { .. } => sleep(time).await,
            Time::Set(now) => {
                let time = i64::try_from(time.as_millis()).unwrap();
                let now = Timestamp(now.fetch_add(time, Ordering::SeqCst) + time);
                // Both at once, so that both see that the same crons are due.
                let wake = |server: usize| {
                    let change = json!({ "metadata": { "at": now.0 } });
                    self.clients[server].call("PATCH", &self.bells[server], Some(change))
                };
                let (first, second) = tokio::join!(wake(0), wake(1));
                first.ok();
                second.ok();
                self.settle(now).await;
            }
        }
    }

    /// Waits until every tick is fired and every run has ended.
    async fn settle(&self, now: Timestamp) {
        for _ in 0..2_000 {
            let next = self.registry.next_cron_due().await.unwrap();
            let runs = self.runs(None).await;
            let is_over = |run: &RunRow| run.status == RunStatus::Success;
            if next.is_none_or(|next| next > now) && runs.iter().all(is_over) {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("at {now:?} some tick was not fired, or some run has not ended");
    }

    /// Returns the runs of a cron; of all of them without one.
    async fn runs(&self, cron: Option<&Json>) -> Vec<RunRow> {
        let mut query = RunQuery {
            metadata: cron.map(|cron| json!({ "cron_id": cron["cron_id"] })),
            ..RunQuery::default()
        };
        query.page.limit = 1_000;
        self.registry.runs(&query).await.unwrap()
    }

    /// Fails unless a cron has made so many runs, each on a thread of its own.
    async fn assert_runs(&self, cron: &Json, wanted: usize, when: &str) {
        assert_eq!(self.runs(Some(cron)).await.len(), wanted, "runs, {when}");
        for client in &self.clients {
            let threads = threads_of(client, cron).await;
            assert_eq!(threads, wanted, "threads, {when}");
        }
    }
}

fn cron_at(schedule: &str) -> Json {
    json!({
        "assistant_id": "visit", "schedule": schedule, "timezone": "Europe/Berlin",
        "input": { "count": 0 }, "on_run_completed": "keep",
    })
}

/// In both nights the hours go by as they do in all others, whatever the clock shows, and each day has one 2:30 or what takes its place.
async fn assert_each_tick_is_one_run(servers: &TwoServers) {
    let [first, second] = &servers.clients;
    let hourly = first.post("/runs/crons", cron_at("0 * * * *")).await.ok();
    let daily = second.post("/runs/crons", cron_at("30 2 * * *")).await.ok();
    for hour in 1..=24 {
        servers.pass(HOUR).await;
        servers
            .assert_runs(&hourly, hour, &format!("hour {hour}"))
            .await;
    }
    let deleted = first.call("DELETE", &path_of(&hourly), None).await;
    assert!(deleted.status.is_success(), "{}", deleted.json);
    for day in 1..=4 {
        if day > 1 {
            servers.pass(DAY).await;
        }
        servers
            .assert_runs(&daily, day, &format!("day {day}"))
            .await;
    }
    // A run too many may come after the one that was waited for.
    sleep(Duration::from_millis(200)).await;
    servers.assert_runs(&hourly, 24, "at the end").await;
    servers.assert_runs(&daily, 4, "at the end").await;
    let shown = second.get(&path_of(&daily)).await.ok();
    assert_eq!(shown["last_error"], Json::Null);
}

#[tokio::test(start_paused = true)]
async fn over_two_servers_and_both_clock_changes_each_tick_is_one_run_in_memory() {
    for saturday in SATURDAYS {
        let (store, registry) = (Memory::default(), MemoryRegistry::new());
        let stores = [(store.clone(), registry.clone()), (store, registry)];
        let servers = TwoServers::start(stores, Time::paused(saturday)).await;
        assert_each_tick_is_one_run(&servers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_two_servers_and_both_clock_changes_each_tick_is_one_run_on_sqlite() {
    for saturday in SATURDAYS {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let store = Sqlite::open(folder.path().join("threads.db")).unwrap();
            (store.clone(), store)
        };
        let servers = TwoServers::start([open(), open()], Time::set(saturday)).await;
        assert_each_tick_is_one_run(&servers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_two_servers_and_both_clock_changes_each_tick_is_one_run_on_postgres() {
    for saturday in SATURDAYS {
        let schema = Schema::new();
        let [first, second] = [schema.connect().await, schema.connect().await];
        let stores = [(first.clone(), first), (second.clone(), second)];
        let servers = TwoServers::start(stores, Time::set(saturday)).await;
        assert_each_tick_is_one_run(&servers).await;
        for client in &servers.clients {
            client.drain().await;
        }
        schema.drop_tables().await;
    }
}
