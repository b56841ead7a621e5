//! The handlers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bench_rounds::{Failure, message};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use crate::pool::Pool;
use crate::script::{Place, Script, Whose};

/// What all handlers share.
pub(crate) struct Desk {
    pool: Pool,
    chain: Script,
    park: Script,
    answer: Script,
    /// Where threads lie, as ours remembers it.
    places: Mutex<HashMap<String, Place>>,
}

/// As few bytes as ours says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done(u64),
}

/// A part of a fan-out.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    thread: String,
    n: i32,
}

impl Desk {
    pub(crate) async fn open(folder: &Path) -> Result<Self, Failure> {
        let read = |name: &str| Script::read(folder, name);
        let (chain, park, answer) = (read("chain")?, read("park")?, read("answer")?);
        Ok(Self {
            pool: Pool::open().await?,
            chain,
            park,
            answer,
            places: Mutex::default(),
        })
    }

    async fn play(&self, script: &Script, name: &str, order: &[u8; 16]) -> HandlerResult<u64> {
        let mut place = self.place(name);
        for batch in &script.batches {
            let whose = Whose {
                name,
                order,
                place: place.as_ref(),
            };
            let played = self.pool.play(batch, &whose).await;
            let rows = played.map_err(|error| HandlerError::from(Told(error)))?;
            if place.is_none() {
                place = rows.first().and_then(place_in);
                self.remember(name, place.clone());
            }
        }
        Ok(script.batches.len() as u64)
    }

    fn place(&self, name: &str) -> Option<Place> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(name).cloned()
    }

    fn remember(&self, name: &str, place: Option<Place>) {
        if let Some(place) = place {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.insert(name.to_owned(), place);
        }
    }

    /// A row of 1 KiB.
    async fn write(&self, thread: &str, n: i32) -> HandlerResult<i32> {
        let body: String = (0..5)
            .map(|part| message(n.unsigned_abs() as usize + part))
            .collect();
        let written = self.pool.query(INSERT, &[&thread, &n, &body]).await;
        written.map_err(|error| HandlerError::from(Told(error)))?;
        Ok(n)
    }

    async fn count(&self, thread: &str) -> HandlerResult<i64> {
        let rows = self.pool.query(COUNT, &[&thread]).await;
        let rows = rows.map_err(|error| HandlerError::from(Told(error)))?;
        Ok(rows.first().map_or(0, |row| row.get(0)))
    }
}

/// A thread, as a virtual object.
pub(crate) struct BareThread(pub(crate) Arc<Desk>);

#[object(name = "BareThread")]
impl BareThread {
    /// What ours sends for a chain of twenty steps, in one durable run.
    #[handler]
    async fn chain(
        &self,
        ctx: ObjectContext<'_>,
        Json(order): Json<[u8; 16]>,
    ) -> HandlerResult<Json<Reply>> {
        play(&ctx, &self.0, &self.0.chain, order).await
    }

    /// What ours sends for a run up to a question.
    #[handler]
    async fn park(
        &self,
        ctx: ObjectContext<'_>,
        Json(order): Json<[u8; 16]>,
    ) -> HandlerResult<Json<Reply>> {
        play(&ctx, &self.0, &self.0.park, order).await
    }

    /// What ours sends for an answer and what follows it.
    #[handler]
    async fn answer(
        &self,
        ctx: ObjectContext<'_>,
        Json(order): Json<[u8; 16]>,
    ) -> HandlerResult<Json<Reply>> {
        play(&ctx, &self.0, &self.0.answer, order).await
    }

    /// A durable run and a write for each of twenty steps.
    #[handler]
    async fn steps(
        &self,
        ctx: ObjectContext<'_>,
        Json(_): Json<[u8; 16]>,
    ) -> HandlerResult<Json<Reply>> {
        let (desk, thread) = (&self.0, ctx.key());
        for n in 0..STEPS {
            ctx.run(|| desk.write(thread, n)).name("step").await?;
        }
        Ok(Json(Reply::Done(0)))
    }

    /// So many calls that write a row each, between two durable runs that write one.
    #[handler]
    async fn fan(
        &self,
        ctx: ObjectContext<'_>,
        Json(_): Json<[u8; 16]>,
    ) -> HandlerResult<Json<Reply>> {
        let (desk, thread) = (&self.0, ctx.key());
        ctx.run(|| desk.write(thread, -1)).name("split").await?;
        let call = |n: i32| {
            let thread = thread.to_owned();
            ctx.service_client::<BareNodeClient<'_>>()
                .write(Json(Part { thread, n }))
                .call()
        };
        let mut calls: DurableFuturesUnordered<_> = (0..BRANCHES).map(call).collect();
        while let Some((_, ended)) = calls.next().await? {
            ended?;
        }
        let rows = ctx
            .run(|| async {
                desk.write(thread, BRANCHES).await?;
                desk.count(thread).await
            })
            .name("join")
            .await?;
        Ok(Json(Reply::Done(rows.unsigned_abs())))
    }
}

/// The parts of a fan-out.
pub(crate) struct BareNode(pub(crate) Arc<Desk>);

#[service(name = "BareNode")]
impl BareNode {
    /// Writes one row.
    #[handler]
    async fn write(&self, _ctx: Context<'_>, Json(part): Json<Part>) -> HandlerResult<()> {
        self.0.write(&part.thread, part.n).await?;
        Ok(())
    }
}

async fn play(
    ctx: &ObjectContext<'_>,
    desk: &Desk,
    script: &Script,
    order: [u8; 16],
) -> HandlerResult<Json<Reply>> {
    let played = ctx
        .run(|| desk.play(script, ctx.key(), &order))
        .name("segment")
        .await?;
    Ok(Json(Reply::Done(played)))
}

/// The statement that makes a thread tells its number, the table of its row, and the partitions of the rest.
fn place_in(row: &Row) -> Option<Place> {
    let mut columns = row.columns().iter();
    let table = columns.position(|column| column.name() == "tableoid")?;
    let of_thread: String = row.try_get(table).ok()?;
    let number: i64 = row.try_get(table.checked_sub(1)?).ok()?;
    let of_rest: i32 = row.try_get(table + 1).ok()?;
    Some(Place {
        number: number.to_be_bytes(),
        of_thread: of_thread.rsplit('_').next()?.to_owned(),
        of_rest: of_rest.to_string(),
    })
}

/// A failure as the SDK takes it.
#[derive(Debug)]
struct Told(Failure);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Told {}

const STEPS: i32 = 20;
const BRANCHES: i32 = 100;
const INSERT: &str =
    "INSERT INTO public.step (thread, n, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const COUNT: &str = "SELECT count(*) FROM public.step WHERE thread = $1";
