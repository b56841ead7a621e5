//! How what people wait for gets slower as threads wait in one SQLite file and in one PostgreSQL: ten thousand, a hundred thousand, a
//! million.
//!
//! Every thread is parked through the runtime, because its rows cannot be copied: each is bound to its thread. What is asked for is
//! another thread each time, and times are of one caller after the other.

use std::time::Instant;

use services::database::ask;
use superstep::Runtime;
use superstep::checkpoint::{InterruptQuery, ThreadQuery};
use superstep::prelude::*;
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;

use super::contest::{BYTES_EACH, Measured, P50, P99, quantile};
use super::findings::{Findings, Which};
use super::fixture::Fixture;
use super::lab::Lab;
use super::orders::{Order, graph, name, park, text};
use super::report::Goal;
use super::side::{Side, ours_with};
use harness::prng::Prng;

pub(super) fn run(lab: &Lab, fixture: &Fixture) -> anyhow::Result<Findings> {
    let mut found = Findings::new("scale", lab.quick);
    let sizes = if lab.quick { QUICK } else { FULL };
    let database = lab.database()?;
    for store in ["sqlite", "postgres"] {
        let mut growing = Growing::open(store, fixture, database.url())?;
        for (threads, side) in sizes {
            growing.grow(*threads)?;
            growing.measure(*threads, *side, &mut found)?;
        }
        judge(store, sizes, &mut found);
    }
    Ok(found)
}

/// A page of the largest store may take at most three times as long as one of the smallest.
fn judge(store: &str, sizes: &[(u64, Side)], found: &mut Findings) {
    let (Some((_, smallest)), Some((_, largest))) = (sizes.first(), sizes.last()) else {
        return;
    };
    for work in Work::ALL.iter().filter(|work| work.is_page()) {
        let which = Which {
            title: work.title(),
            store,
            figure: P99,
        };
        found.judge_between(which, *largest, *smallest, Goal::RatioAtMost(3.0));
    }
}

/// A store to which threads are added.
struct Growing<'a> {
    fixture: &'a Fixture,
    store: &'static str,
    runtime: Runtime,
    kind: Kind,
    graph: Graph<Order>,
    empty: u64,
    threads: u64,
    /// How many have been answered, from the first one on.
    answered: u64,
    prng: Prng,
}

enum Kind {
    Sqlite(Sqlite),
    Postgres(Postgres, String),
}

impl<'a> Growing<'a> {
    fn open(store: &'static str, fixture: &'a Fixture, url: &str) -> anyhow::Result<Self> {
        let (runtime, kind) = match store {
            "sqlite" => {
                let sqlite = fixture.sqlite()?;
                (Runtime::new(sqlite.clone()), Kind::Sqlite(sqlite))
            }
            _ => {
                let postgres = fixture.wait(Postgres::connect(url))?;
                let kind = Kind::Postgres(postgres.clone(), url.to_owned());
                (Runtime::new(postgres), kind)
            }
        };
        let mut growing = Self {
            fixture,
            store,
            runtime,
            kind,
            graph: graph()?,
            empty: 0,
            threads: 0,
            answered: 0,
            prng: Prng::new(7),
        };
        growing.empty = growing.bytes()?;
        Ok(growing)
    }

    /// Parks threads until there are so many.
    fn grow(&mut self, threads: u64) -> anyhow::Result<()> {
        /// A line of progress for each.
        const PART: u64 = 50_000;
        let begun = Instant::now();
        let before = self.threads;
        while self.threads < threads {
            let end = threads.min(self.threads + PART);
            self.fixture.wait(park(&self.runtime, self.threads..end))?;
            self.threads = end;
            let each = (end - before) as f64 / begun.elapsed().as_secs_f64();
            eprintln!(
                "{}: {end} of {threads} threads, {each:.0} a second",
                self.store
            );
        }
        if let Kind::Postgres(_, url) = &self.kind {
            // Its own daemon would do this within minutes.
            ask(url, "VACUUM ANALYZE")?;
        }
        Ok(())
    }

    fn bytes(&self) -> anyhow::Result<u64> {
        Ok(match &self.kind {
            Kind::Sqlite(sqlite) => self.fixture.wait(sqlite.bytes())?,
            Kind::Postgres(postgres, _) => self.fixture.wait(postgres.bytes())?,
        })
    }

    fn measure(&mut self, threads: u64, side: Side, found: &mut Findings) -> anyhow::Result<()> {
        let bytes = (self.bytes()? - self.empty) as f64 / threads as f64;
        let new = |title, figure| Measured::new(title, self.store, side, "", figure);
        let mut each = new("one waiting thread", BYTES_EACH);
        each.push(bytes);
        found.measured.push(each);
        for work in Work::ALL {
            let times = self.times(*work)?;
            let new = |figure| Measured::new(work.title(), self.store, side, "", figure);
            for (figure, part) in [(P99, 0.99), (P50, 0.5)] {
                let mut measured = new(figure);
                measured.push(quantile(&times, part));
                eprintln!(
                    "{}, {}, {}: {:.3} {figure}",
                    self.store,
                    side.label,
                    work.title(),
                    measured.median()
                );
                found.measured.push(measured);
            }
        }
        Ok(())
    }

    /// How long each of many repetitions took, in milliseconds.
    fn times(&mut self, work: Work) -> anyhow::Result<Vec<f64>> {
        let fixture = self.fixture;
        let mut times = Vec::new();
        for time in 0..WARM_UP + work.times() {
            let begun = Instant::now();
            fixture.wait(self.once(work))?;
            if time >= WARM_UP {
                times.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(times)
    }

    async fn once(&mut self, work: Work) -> anyhow::Result<()> {
        let number = self.prng.below(self.threads);
        match work {
            Work::Newest => self.find(&ThreadQuery::default(), PAGE).await,
            Work::FindOne => {
                // Answered threads are still found; only their status is another one.
                let query = by_value("customer", &format!("customer-{number}"));
                self.find(&query, 1).await
            }
            Work::FindMany => {
                let query = by_value("city", &format!("city-{}", number % 50));
                self.find(&query, PAGE).await
            }
            Work::Count => {
                let query = by_value("city", &format!("city-{}", number % 50));
                let counted = self.runtime.count_threads(&query).await?;
                anyhow::ensure!(counted == self.threads / 50, "{counted} threads");
                Ok(())
            }
            Work::Inbox => {
                let query = InterruptQuery {
                    open_only: true,
                    ..InterruptQuery::default()
                };
                let open = self.runtime.interrupts(&query).await?;
                anyhow::ensure!(open.len() == PAGE, "{} interrupts", open.len());
                Ok(())
            }
            Work::Open => {
                let thread = self.runtime.thread(&self.graph, name(number))?;
                anyhow::ensure!(thread.state().await?.is_some(), "the thread is gone");
                Ok(())
            }
            Work::Answer => {
                let thread = self.runtime.thread(&self.graph, name(self.answered))?;
                self.answered += 1;
                let outcome = thread.resume_with(true).await?.outcome;
                anyhow::ensure!(matches!(outcome, Outcome::Finished), "{outcome:?}");
                Ok(())
            }
        }
    }

    async fn find(&self, query: &ThreadQuery, rows: usize) -> anyhow::Result<()> {
        let found = self.runtime.threads(query).await?;
        anyhow::ensure!(found.len() == rows, "{} threads", found.len());
        Ok(())
    }
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Newest,
    FindOne,
    FindMany,
    Inbox,
    Open,
    Answer,
    Count,
}

impl Work {
    const ALL: &[Self] = &[
        Work::Newest,
        Work::FindOne,
        Work::FindMany,
        Work::Inbox,
        Work::Open,
        Work::Answer,
        Work::Count,
    ];

    fn title(self) -> &'static str {
        match self {
            Work::Newest => "list the ten newest threads",
            Work::FindOne => "search by a value that one thread has",
            Work::FindMany => "search by a value that one in fifty has, ten threads",
            Work::Inbox => "list the ten oldest open interrupts",
            Work::Open => "open a thread and read its state",
            Work::Answer => "answer an interrupt, to the end of the run",
            Work::Count => "count the threads with a value that one in fifty has",
        }
    }

    /// Whether an index finds it, however many threads there are. A count has to look at all that it counts.
    fn is_page(self) -> bool {
        self != Work::Count
    }

    fn times(self) -> usize {
        if self.is_page() { 500 } else { 20 }
    }
}

fn by_value(field: &str, value: &str) -> ThreadQuery {
    ThreadQuery {
        values: vec![text(field, value)],
        ..ThreadQuery::default()
    }
}

/// What a page has by default.
const PAGE: usize = 10;
/// Repetitions that do not count: what was parked last is in memory, and what is asked for is not.
const WARM_UP: usize = 20;

const FULL: &[(u64, Side)] = &[
    (10_000, ours_with("10,000 threads")),
    (100_000, ours_with("100,000 threads")),
    (1_000_000, ours_with("1,000,000 threads")),
];
const QUICK: &[(u64, Side)] = &[
    (1_000, ours_with("1,000 threads")),
    (2_000, ours_with("2,000 threads")),
];
