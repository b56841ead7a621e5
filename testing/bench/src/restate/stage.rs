//! Where everything happens: a Restate of its own, and the workers of both sides with a database each.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use free_ports::free_port;
use serde_json::json;
use services::database::{Database, ask};
use superstep::checkpoint::{Answer, AnswerBody, Checkpointer, InterruptQuery, InterruptRow, Page};
use superstep::driver::{QueuedRequest, ThreadRequest};
use superstep::{RunOptions, ThreadId, Timestamp, Value};
use superstep_postgres::Postgres;

use super::load::{Errand, Http, Way, new_id, new_thread};
use super::wire::{Place, Wire};
use crate::lab::Lab;
use crate::ours::worker;
use crate::side::{Program, Running, Side};
use services::restate::{Layout, PrivateRestate, Restate, Setup};

pub(super) struct Stage {
    pub(super) tokio: tokio::runtime::Runtime,
    pub(super) http: Http,
    pub(super) ours: Backstage,
    pub(super) bare: Backstage,
    /// The threads of the bare side that are parked.
    pub(super) bare_parked: VecDeque<ThreadId>,
    restate: PrivateRestate,
}

/// A worker and what it works on. The fields go in this order: the worker before its database.
pub(super) struct Backstage {
    pub(super) worker: Running,
    pub(super) store: Postgres,
    database: Database,
}

impl Backstage {
    pub(super) fn url(&self) -> &str {
        self.database.url()
    }

    pub(super) fn database_name(&self) -> String {
        let (_, name) = self.url().rsplit_once('/').unwrap_or_default();
        // A blank behind it, for one number may begin another.
        format!("{name} ")
    }
}

impl Stage {
    pub(super) fn build(lab: &Lab) -> anyhow::Result<Self> {
        let tokio = tokio::runtime::Runtime::new()?;
        let setup = Setup {
            layout: Layout::Single,
            env: Vec::new(),
        };
        let restate = Restate::private("bench", setup)?;
        let node = restate.nodes()?.into_iter().next();
        let node = node.context("it has no node")?;
        let http = Http::new(&node.ingress);
        let maker = Maker {
            lab,
            tokio: &tokio,
            http: &http,
            admin: node.admin,
            folder: lab.folder().join("restate"),
        };
        std::fs::create_dir_all(&maker.folder)?;
        maker
            .record()
            .context("what ours sends cannot be recorded")?;
        let ours = maker.backstage(Program::Ours)?;
        let bare = maker.backstage(Program::Bare)?;
        Ok(Self {
            http,
            ours,
            bare,
            bare_parked: VecDeque::new(),
            tokio,
            restate,
        })
    }

    pub(super) fn of(&mut self, side: Side) -> &mut Backstage {
        match side.program {
            Program::Ours => &mut self.ours,
            _ => &mut self.bare,
        }
    }

    /// What is in the command line of the server.
    pub(super) fn restate_folder(&self) -> String {
        self.restate.folder().display().to_string()
    }

    /// How a side is called.
    pub(super) fn way(&self, side: Side, bare: &'static str) -> Way {
        match side.program {
            Program::Ours => our_way(&self.ours.store),
            _ => Way {
                // Who writes step by step has no orders.
                inbox: (bare != "steps" && bare != "fan").then(|| self.bare.store.clone()),
                service: "BareThread",
                handler: bare,
            },
        }
    }
}

fn our_way(store: &Postgres) -> Way {
    Way {
        inbox: Some(store.clone()),
        service: "SuperstepThread",
        handler: "run",
    }
}

struct Maker<'a> {
    lab: &'a Lab,
    tokio: &'a tokio::runtime::Runtime,
    http: &'a Http,
    admin: String,
    /// Where the scripts are.
    folder: PathBuf,
}

impl Maker<'_> {
    /// A database with our tables, and a worker that Restate knows.
    fn backstage(&self, program: Program) -> anyhow::Result<Backstage> {
        let database = self.lab.database()?;
        let store = self.tokio.block_on(Postgres::connect(database.url()))?;
        Ok(Backstage {
            worker: self.worker(program, database.url())?,
            store,
            database,
        })
    }

    fn worker(&self, program: Program, url: &str) -> anyhow::Result<Running> {
        let address = format!("127.0.0.1:{}", free_port());
        let worker = self.lab.worker(program, &self.folder, url, &address)?;
        let deployments = format!("{}/deployments", self.admin);
        let known = json!({ "uri": format!("http://{address}"), "force": true });
        let registered = self.http.post(&deployments, "", &known);
        self.tokio.block_on(registered)?;
        Ok(worker)
    }

    /// Lets a worker of ours do each kind of order once, and writes down what it sends.
    fn record(&self) -> anyhow::Result<()> {
        let database = self.lab.database()?;
        let store = self.tokio.block_on(Postgres::connect(database.url()))?;
        // No count and no place in a log is this large: what is bound with this value is the number of a thread.
        ask(
            database.url(),
            "ALTER SEQUENCE superstep.thread_id RESTART 7000000001",
        )?;
        let wire = self.tokio.block_on(Wire::before(database.url()))?;
        let _worker = self.worker(Program::Ours, wire.url())?;
        let (chain, park) = (worker::chain_order()?, worker::approval_order(true)?);
        self.tokio.block_on(async {
            let errand = |order: Arc<QueuedRequest>| Errand {
                thread: new_thread(),
                order,
            };
            let recorder = Recorder {
                maker: self,
                store: &store,
                wire: &wire,
                url: database.url(),
            };
            recorder.one("chain", errand(chain)).await?;
            recorder.one("park", errand(park)).await?;
            let asked = questions(&store, 1).await?;
            let asked = asked.first().context("nobody asks")?;
            recorder.one("answer", answer_to(asked)?).await
        })
    }
}

/// Writes down what a worker behind this wire sends.
struct Recorder<'a> {
    maker: &'a Maker<'a>,
    store: &'a Postgres,
    wire: &'a Wire,
    url: &'a str,
}

impl Recorder<'_> {
    async fn one(&self, name: &str, errand: Errand) -> anyhow::Result<()> {
        let id = new_id();
        self.wire.begin();
        let way = our_way(self.store);
        self.maker.http.give(&way, &errand, id).await?;
        let place = self.place(errand.thread.name())?;
        let script = self.wire.end(errand.thread.name(), &id.to_bytes(), &place);
        let batches = script.as_array().map_or(0, Vec::len);
        eprintln!("{name}: ours sends {batches} times to PostgreSQL and waits");
        ensure!(batches > 0, "`{name}` sent nothing");
        let file = self.maker.folder.join(format!("{name}.json"));
        Ok(std::fs::write(file, script.to_string())?)
    }

    fn place(&self, thread: &str) -> anyhow::Result<Place> {
        let told = ask(
            self.url,
            &format!(
                "SELECT id, split_part(tableoid::regclass::text, '_', 2),
                     (SELECT split_part(tableoid::regclass::text, '_', 2) FROM superstep.log WHERE thread = id LIMIT 1)
                 FROM superstep.thread WHERE name = '{thread}'"
            ),
        )?;
        let mut columns = told.trim().split('|');
        let mut column = || columns.next().context("a column is missing");
        Ok(Place {
            number: column()?.parse()?,
            of_thread: column()?.parse()?,
            of_rest: column()?.parse()?,
        })
    }
}

/// The questions that are open, the oldest first.
pub(super) async fn questions(store: &Postgres, count: usize) -> anyhow::Result<Vec<InterruptRow>> {
    let query = InterruptQuery {
        tenant: String::new(),
        thread: None,
        threads: Vec::new(),
        open_only: true,
        due: None,
        page: Page {
            limit: u32::try_from(count)?,
            offset: 0,
        },
    };
    Ok(store.interrupts(&query).await?)
}

/// The order that answers a question.
pub(super) fn answer_to(asked: &InterruptRow) -> anyhow::Result<Errand> {
    let answer = Answer {
        interrupt: asked.id,
        body: AnswerBody::Value(Value::plain("yes")?),
        by: String::new(),
        at: Timestamp(asked.asked_at.0 + 1),
    };
    let what = ThreadRequest::Answer(vec![answer]);
    let order = QueuedRequest::new("approval", what, &RunOptions::default())?;
    Ok(Errand {
        thread: asked.thread.clone(),
        order: Arc::new(order),
    })
}
