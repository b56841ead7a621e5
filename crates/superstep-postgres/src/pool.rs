//! Connections: how many there are, who uses which, and what happens when one breaks.
//!
//! A request is one statement and takes the least busy connection. The client library sends it at once, pipelined behind
//! requests in flight, and PostgreSQL runs each in its own transaction. A transaction of several statements gets an exclusive
//! connection ([`Pool::alone`]), because otherwise statements of others would run inside it.
//!
//! The next request that needs a broken connection opens it again. Requests that were in flight on it fail with an unknown
//! outcome, and their callers retry. Reads are retried here.
//!
//! No request may depend on the caller of another one: a caller can stop polling its future in the middle, as the stream of a slow
//! client does. So connections are opened in tasks of their own.

use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep_core::__private::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    CancelToken, Client, Connection, IsolationLevel, NoTls, Row, Socket, Statement, Transaction,
};

use crate::Options;
use crate::address::Address;
use crate::fault::{Fault, PostgresError};
use crate::place::Partitions;
use crate::tls::Encryption;

/// Values for the parameters of a statement.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// All connections to one database.
pub(crate) struct Pool {
    connector: Connector,
    patience: Duration,
    slots: Vec<Arc<Slot>>,
    alone: Semaphore,
    idle_alone: Mutex<Vec<Link>>,
}

/// How a connection is opened.
#[derive(Clone)]
struct Connector {
    address: Address,
    /// Settings sent to the server once per connection.
    greeting: String,
    request_timeout: Duration,
}

#[derive(Default)]
struct Slot {
    link: Mutex<Option<Arc<Link>>>,
    attempt: Mutex<Attempt>,
    busy: AtomicUsize,
}

/// The last attempt to open the connection of a slot. All requests that need the connection wait for one attempt.
#[derive(Default)]
struct Attempt {
    outcome: Option<AttemptOutcome>,
    task: JoinSet<()>,
}

/// What came of an attempt; `None` while it is under way.
type AttemptOutcome = watch::Receiver<Option<Result<Arc<Link>, Arc<dyn Error + Send + Sync>>>>;

/// The prepared statements of a connection.
#[derive(Default)]
struct Statements {
    by_text: HashMap<Box<str>, Statement>,
    /// Some of the same, for callers that need not build the text.
    by_key: HashMap<StatementKey, Statement>,
}

/// What the text of a statement depends on: two statements with the same key have the same text. A text that is prepared
/// already need be neither built nor hashed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StatementKey {
    pub(crate) text: TextKey,
    /// The partitions that it names.
    pub(crate) partitions: Option<Partitions>,
}

/// Stands for the text of a statement, before partitions are named in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextKey {
    /// A commit, by its parts as bits.
    Commit(u16),
    /// A text of the program, by where it is and how long it is. It stays there, so no other text is ever found in its place.
    Constant { address: usize, bytes: usize },
}

impl TextKey {
    pub(crate) fn of(text: &'static str) -> Self {
        TextKey::Constant {
            address: text.as_ptr() as usize,
            bytes: text.len(),
        }
    }
}

/// A statement by its key, with values for its parameters. `sql` builds its text, if the connection has not prepared it.
pub(crate) struct KeyedStatement<'a, F> {
    pub(crate) key: StatementKey,
    pub(crate) sql: F,
    pub(crate) params: Params<'a>,
}

/// A single connection.
pub(crate) struct Link {
    client: Client,
    statements: Mutex<Statements>,
    /// Drives the connection. Ends by itself, after a clean goodbye to the server, when the client is dropped.
    tasks: JoinSet<()>,
    abort: AbortHandle,
    /// Set when the connection is given up: an aborted task takes a while to end, and no request must use it meanwhile.
    is_lost: AtomicBool,
}

impl Pool {
    pub(crate) fn new(mut address: Address, options: &Options) -> Self {
        let config = &mut address.config;
        if config.get_application_name().is_none() {
            config.application_name("superstep");
        }
        config.connect_timeout(options.connect_timeout);
        config.keepalives_idle(KEEPALIVE_IDLE);
        // After a failover the former primary may be back as a read-only standby.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Self {
            connector: Connector {
                address,
                greeting: greeting(options),
                request_timeout: options.request_timeout,
            },
            patience: options.patience,
            slots: (0..options.connections.max(1))
                .map(|_| Arc::default())
                .collect(),
            alone: Semaphore::new(ALONE_MAX),
            idle_alone: Mutex::default(),
        }
    }

    /// Runs a statement that may change something. If its connection breaks, its outcome is unknown.
    pub(crate) async fn write(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        let slot = self.least_busy();
        let _busy = slot.enter();
        let link = self.link(slot).await?;
        self.in_time(&link, link.query(sql, params)).await
    }

    /// Runs a statement like [`write`](Self::write), found by its key.
    pub(crate) async fn write_by_key<F: Fn() -> String>(
        &self,
        statement: &KeyedStatement<'_, F>,
    ) -> Result<Vec<Row>, Fault> {
        let slot = self.least_busy();
        let _busy = slot.enter();
        let link = self.link(slot).await?;
        let query = async {
            let prepared = link.prepare_by_key(statement).await?;
            Ok(link.client.query(&prepared, statement.params).await?)
        };
        self.in_time(&link, query).await
    }

    /// Runs a read-only statement like [`read`](Self::read), found by its key.
    pub(crate) async fn read_by_key<F: Fn() -> String>(
        &self,
        statement: &KeyedStatement<'_, F>,
    ) -> Result<Vec<Row>, Fault> {
        self.patiently(Fault::is_lost, || self.write_by_key(statement))
            .await
    }

    /// Runs a statement that may change something, and a read that sees the result of the first. They are sent together, each
    /// as its own transaction.
    pub(crate) async fn write_then_read<W: Fn() -> String, R: Fn() -> String>(
        &self,
        write: &KeyedStatement<'_, W>,
        read: &KeyedStatement<'_, R>,
    ) -> Result<(Vec<Row>, Vec<Row>), Fault> {
        let slot = self.least_busy();
        let _busy = slot.enter();
        let link = self.link(slot).await?;
        let both = async {
            // Both before either is sent, so that nothing comes between the two.
            let first = link.prepare_by_key(write).await?;
            let second = link.prepare_by_key(read).await?;
            let (written, found) = tokio::join!(
                biased;
                link.client.query(&first, write.params),
                link.client.query(&second, read.params),
            );
            Ok((written?, found?))
        };
        self.in_time(&link, both).await
    }

    /// Runs a read-only statement, and retries it if its connection breaks.
    pub(crate) async fn read(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        self.patiently(Fault::is_lost, || self.write(sql, params))
            .await
    }

    /// Takes an exclusive connection, for a transaction of several statements.
    pub(crate) async fn alone(&self) -> Result<Alone<'_>, Fault> {
        let permit = self
            .alone
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let idle = loop {
            match lock(&self.idle_alone).pop() {
                Some(link) if link.client.is_closed() => {}
                found => break found,
            }
        };
        let link = match idle {
            Some(link) => link,
            None => self.connect_patiently().await?,
        };
        Ok(Alone {
            pool: self,
            link,
            _permit: permit,
        })
    }

    fn least_busy(&self) -> &Arc<Slot> {
        let busy = |slot: &&Arc<Slot>| (slot.busy.load(Ordering::Relaxed), slot.live().is_none());
        self.slots.iter().min_by_key(busy).expect("there is one")
    }

    /// Returns the connection of a slot. Retries any transient failure, because nothing has been sent to the server yet.
    async fn link(&self, slot: &Arc<Slot>) -> Result<Arc<Link>, Fault> {
        if let Some(link) = slot.live() {
            return Ok(link);
        }
        let attempted = || async {
            let mut outcome = match slot.live_or_attempt(&self.connector) {
                Ok(link) => return Ok(link),
                Err(outcome) => outcome,
            };
            // It fails if the task is gone, with the tokio runtime that it was on.
            let outcome = outcome.wait_for(Option::is_some).await;
            match outcome.ok().as_deref() {
                Some(Some(Ok(link))) => Ok(Arc::clone(link)),
                Some(Some(Err(source))) => Err(PostgresError::Unconnected {
                    source: Arc::clone(source),
                }
                .into()),
                _ => Err(self.connector.silent()),
            }
        };
        self.patiently(|fault| !fault.is_final(), attempted).await
    }

    /// Opens a connection that no request shares, for a lock that lasts as long as its session. Both sides notice within half a
    /// minute if the other one is gone without a goodbye.
    pub(crate) async fn dedicated(&self) -> Result<Link, Fault> {
        let mut connector = self.connector.clone();
        connector
            .address
            .config
            .keepalives_idle(PROBE_IDLE)
            .keepalives_interval(PROBE_INTERVAL)
            .keepalives_retries(PROBES_MAX);
        connector.greeting = format!(
            "{} SET idle_session_timeout = 0; SET tcp_keepalives_idle = {};
             SET tcp_keepalives_interval = {}; SET tcp_keepalives_count = {PROBES_MAX};",
            self.connector.greeting,
            PROBE_IDLE.as_secs(),
            PROBE_INTERVAL.as_secs()
        );
        self.patiently(|fault| !fault.is_final(), || connector.connect())
            .await
    }

    /// Runs a statement on a dedicated connection.
    pub(crate) async fn query_on(
        &self,
        link: &Link,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Fault> {
        self.in_time(link, link.query(sql, params)).await
    }

    /// Retries any transient failure, because nothing has been sent to the server yet.
    async fn connect_patiently(&self) -> Result<Link, Fault> {
        self.patiently(|fault| !fault.is_final(), || self.connector.connect())
            .await
    }

    async fn patiently<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        may_pass: impl Fn(&Fault) -> bool,
        mut ask: impl FnMut() -> F,
    ) -> Result<T, Fault> {
        let begun = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            match ask().await {
                Err(fault) if may_pass(&fault) && begun.elapsed() + wait < self.patience => {
                    tracing::debug!(?fault, "the database did not answer, asking again");
                    sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                answer => return answer,
            }
        }
    }

    async fn in_time<T>(
        &self,
        link: &Link,
        request: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let answer = match timeout(self.connector.request_timeout, request).await {
            Ok(answer) => answer,
            Err(_) => Err(self.connector.silent()),
        };
        if answer.as_ref().is_err_and(Fault::is_lost) {
            // Also if the server only reports that it will close: other requests must not wait for it.
            link.is_lost.store(true, Ordering::Relaxed);
            link.abort.abort();
        }
        answer
    }
}

impl Connector {
    async fn connect(&self) -> Result<Link, Fault> {
        let made = Link::connect(&self.address, &self.greeting);
        let made = timeout(self.request_timeout, made).await;
        made.unwrap_or_else(|_| Err(self.silent()))
    }

    fn silent(&self) -> Fault {
        let waited = self.request_timeout;
        PostgresError::Silent { waited }.into()
    }
}

impl Slot {
    /// Returns the connection, or an attempt to open it that is under way.
    fn live_or_attempt(
        self: &Arc<Self>,
        connector: &Connector,
    ) -> Result<Arc<Link>, AttemptOutcome> {
        let mut attempt = lock(&self.attempt);
        // The last attempt may have ended since the caller looked.
        if let Some(link) = self.live() {
            return Ok(link);
        }
        let is_under_way =
            |outcome: &&AttemptOutcome| outcome.has_changed().is_ok() && outcome.borrow().is_none();
        if let Some(outcome) = attempt.outcome.as_ref().filter(is_under_way) {
            return Err(outcome.clone());
        }
        let (told, outcome) = watch::channel(None);
        attempt.outcome = Some(outcome.clone());
        while attempt.task.try_join_next().is_some() {}
        let (slot, connector) = (Arc::clone(self), connector.clone());
        attempt.task.spawn(async move {
            let made = connector.connect().await;
            let made = made.map(Arc::new).map_err(Fault::into_shared);
            if let Ok(link) = &made {
                *lock(&slot.link) = Some(Arc::clone(link));
            }
            told.send_replace(Some(made));
        });
        Err(outcome)
    }

    fn live(&self) -> Option<Arc<Link>> {
        let link = lock(&self.link);
        link.as_ref().filter(|link| link.is_live()).cloned()
    }

    fn enter(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.busy)
    }
}

struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Link {
    async fn connect(address: &Address, greeting: &str) -> Result<Self, Fault> {
        let config = address.config_now()?;
        let link = match &address.encryption {
            None => config.connect(NoTls).await.map(Self::over),
            Some(encryption) => config.connect(encryption.clone()).await.map(Self::over),
        };
        let link = link.map_err(|source| address.refusal(source))?;
        link.client.batch_execute(greeting).await?;
        Ok(link)
    }

    /// Drives a connection, encrypted or not.
    fn over<S>((client, connection): (Client, Connection<Socket, S>)) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        let abort = tasks.spawn(async {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database broke");
            }
        });
        Self {
            client,
            statements: Mutex::default(),
            tasks,
            abort,
            is_lost: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        let is_lost = self.is_lost.load(Ordering::Relaxed);
        !is_lost && !self.client.is_closed() && !self.abort.is_finished()
    }

    async fn query(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, params).await?)
    }

    async fn prepare(&self, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = lock(&self.statements).by_text.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        let mut statements = lock(&self.statements);
        if statements.by_text.len() >= STATEMENTS_MAX {
            // Drops all of them: it is rare, and those in use are soon prepared again.
            *statements = Statements::default();
        }
        statements.by_text.insert(sql.into(), statement.clone());
        Ok(statement)
    }

    async fn prepare_by_key<F: Fn() -> String>(
        &self,
        wanted: &KeyedStatement<'_, F>,
    ) -> Result<Statement, Fault> {
        if let Some(statement) = lock(&self.statements).by_key.get(&wanted.key) {
            return Ok(statement.clone());
        }
        let statement = self.prepare(&(wanted.sql)()).await?;
        let mut statements = lock(&self.statements);
        statements.by_key.insert(wanted.key, statement.clone());
        Ok(statement)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Not aborted, because it still says goodbye to the server; the client is dropped next, which ends the task.
        self.tasks.detach_all();
    }
}

/// An exclusive connection. Closed on drop unless it is given back, which rolls back an open transaction.
pub(crate) struct Alone<'a> {
    pool: &'a Pool,
    link: Link,
    _permit: SemaphorePermit<'a>,
}

impl Alone<'_> {
    pub(crate) async fn begin(
        &mut self,
        isolation: IsolationLevel,
    ) -> Result<Transaction<'_>, Fault> {
        let transaction = self.link.client.build_transaction();
        Ok(transaction.isolation_level(isolation).start().await?)
    }

    /// Returns what cancels the statement in progress on this connection, unless it is disarmed. For statements that may take long:
    /// PostgreSQL does not notice that the caller is gone, and would go on to the end.
    pub(crate) fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop {
            token: Some(self.link.client.cancel_token()),
            encryption: self.pool.connector.address.encryption.clone(),
        }
    }

    /// Returns the connection to the pool.
    pub(crate) fn give_back(self) {
        lock(&self.pool.idle_alone).push(self.link);
    }
}

/// Cancels the statement in progress on a connection when it is dropped. The connection must not be used after that.
pub(crate) struct CancelOnDrop {
    token: Option<CancelToken>,
    /// The request to cancel goes over a connection of its own, which is encrypted like all others.
    encryption: Option<Encryption>,
}

impl CancelOnDrop {
    pub(crate) fn disarm(mut self) {
        self.token = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else {
            return;
        };
        // Without a runtime, the process is about to end, and the connection with it.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let encryption = self.encryption.take();
        let cancel = async move {
            let cancelled = async {
                match encryption {
                    None => token.cancel_query(NoTls).await,
                    Some(encryption) => token.cancel_query(encryption).await,
                }
            };
            // Otherwise the task would wait for a server that is gone as long as the process runs.
            match timeout(CANCEL_TIMEOUT, cancelled).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a statement was not cancelled"),
                Err(_) => {
                    tracing::debug!(waited = ?CANCEL_TIMEOUT, "a statement was not cancelled in time")
                }
            }
        };
        let mut task = JoinSet::new();
        task.spawn_on(cancel, &runtime);
        task.detach_all();
    }
}

/// Reads the rows of a query in one snapshot, in batches, for as long as `visit` returns `true`.
pub(crate) async fn walk(
    pool: &Pool,
    sql: &str,
    params: Params<'_>,
    mut visit: impl FnMut(&Row) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    let portal = transaction.bind(sql, params).await?;
    'rows: loop {
        let rows = transaction.query_portal(&portal, ROWS_AT_ONCE).await?;
        for row in &rows {
            if !visit(row)? {
                break 'rows;
            }
        }
        if rows.len() < ROWS_AT_ONCE as usize {
            break;
        }
    }
    drop(portal);
    transaction.commit().await?;
    alone.give_back();
    Ok(())
}

/// Every statement of ours finds few rows by an index. So plans are generic, and the planner is kept from scanning whole
/// tables while they are so small that this looks cheap. The operator's durability setting is kept, unless it is `off`.
///
/// The isolation level is set for statements that are sent without a transaction: commits, `create_run` and `take_runs` wait
/// for other writers and then go by what those wrote. At a stricter level, which a role or a database can have as its default,
/// they would see the tables as of their start: a commit that waited would fail, and two runs could start on one thread.
fn greeting(options: &Options) -> String {
    format!(
        "SET search_path TO \"{}\", pg_catalog;
         SET default_transaction_isolation = 'read committed';
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
         SET max_parallel_workers_per_gather = 0; SET jit = off;
         SET statement_timeout = {}; SET idle_in_transaction_session_timeout = '60s';
         SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') = 'off';",
        options.schema,
        options.request_timeout.as_millis()
    )
}

/// Maximum number of prepared statements per connection: each takes some 20 KB of the server's memory.
const STATEMENTS_MAX: usize = 1_024;
/// Maximum number of concurrent transactions of several statements.
const ALONE_MAX: usize = 4;
const ROWS_AT_ONCE: i32 = 256;
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Keepalive probes of a dedicated connection, by both sides.
const PROBE_IDLE: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES_MAX: u32 = 3;
/// How long the server has to take a request to cancel a statement.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

#[test]
fn texts_that_begin_alike_have_different_keys() {
    let text = "SELECT 1, 2";
    assert_eq!(TextKey::of(text), TextKey::of(text));
    assert_ne!(TextKey::of(text), TextKey::of(&text[..8]));
}
