//! Many threads that wait for an answer: what each costs on disk, and how fast one is found.

use superstep::Runtime;
use superstep::checkpoint::{Filter, FilterValue, InterruptQuery, Page, Status, ThreadQuery};
use superstep_sqlite::Sqlite;

use super::fixture::Fixture;
use super::orders::{graph, name, park, text};
use super::report::Row;
use super::timing::median_of;
use harness::prng::Prng;

pub(super) fn run(fixture: &Fixture) -> anyhow::Result<Vec<Row>> {
    let path = fixture.path();
    let empty = fixture.wait(Sqlite::open(&path)?.bytes())?;
    let threads = fixture.size(100_000, 5_000) as u64;
    fixture.wait(park(&Runtime::new(Sqlite::open(&path)?), 0..threads))?;
    let each = (fixture.wait(Sqlite::open(&path)?.bytes())? - empty) as f64 / threads as f64;

    let found = Found {
        fixture,
        runtime: Runtime::new(Sqlite::open(&path)?),
        threads,
    };
    Ok(vec![
        Row::new(format!("{threads} parked threads, each"), "bytes", each).at_most(2_048.0),
        Row::new("search by a value of one thread", "ms", found.one()?).at_most(50.0),
        Row::new("search by a value of one in fifty", "ms", found.many()?).at_most(50.0),
        Row::new("search by two values and the status", "ms", found.both()?).at_most(50.0),
        Row::new("list the newest page", "ms", found.newest()?).at_most(50.0),
        Row::new("list the oldest questions", "ms", found.questions()?).at_most(50.0),
        Row::new("open one", "ms", found.open()?),
    ])
}

/// The database with all threads in it.
struct Found<'a> {
    fixture: &'a Fixture,
    runtime: Runtime,
    threads: u64,
}

impl Found<'_> {
    fn one(&self) -> anyhow::Result<f64> {
        let customer = format!("customer-{}", self.threads / 3);
        let query = ThreadQuery {
            values: vec![text("customer", &customer)],
            ..ThreadQuery::default()
        };
        self.search(&query, 1)
    }

    fn many(&self) -> anyhow::Result<f64> {
        let query = ThreadQuery {
            values: vec![text("city", "city-7")],
            ..ThreadQuery::default()
        };
        self.search(&query, 10)
    }

    fn both(&self) -> anyhow::Result<f64> {
        let express = Filter {
            field: "express".to_owned(),
            equals: FilterValue::Bool(true),
        };
        let query = ThreadQuery {
            statuses: vec![Status::Paused],
            values: vec![text("city", "city-8"), express],
            ..ThreadQuery::default()
        };
        self.search(&query, 10)
    }

    fn newest(&self) -> anyhow::Result<f64> {
        self.search(&ThreadQuery::default(), 10)
    }

    fn search(&self, query: &ThreadQuery, rows: usize) -> anyhow::Result<f64> {
        let milliseconds = median_of(TIMES, || {
            let found = self.fixture.wait(self.runtime.threads(query))?;
            anyhow::ensure!(found.len() == rows, "{} rows", found.len());
            Ok(())
        })?;
        Ok(milliseconds * 1e3)
    }

    fn questions(&self) -> anyhow::Result<f64> {
        let query = InterruptQuery {
            open_only: true,
            page: Page::default(),
            ..InterruptQuery::default()
        };
        let took = median_of(TIMES, || {
            let found = self.fixture.wait(self.runtime.interrupts(&query))?;
            anyhow::ensure!(found.len() == 10, "{} rows", found.len());
            Ok(())
        })?;
        Ok(took * 1e3)
    }

    fn open(&self) -> anyhow::Result<f64> {
        let graph = graph()?;
        let mut prng = Prng::new(3);
        let took = median_of(TIMES, || {
            let thread = self
                .runtime
                .thread(&graph, name(prng.below(self.threads)))?;
            let state = self.fixture.wait(thread.state())?;
            anyhow::ensure!(state.is_some(), "the thread is gone");
            Ok(())
        })?;
        Ok(took * 1e3)
    }
}

const TIMES: usize = 25;
