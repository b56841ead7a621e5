//! Killed everywhere: before and after every call of the store, of the model and of the API. What goes on is a new process over
//! the same database and comes to the same; a write is at its receiver once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archie::agents::AGENTS;
use archie::app::App;
use archie::commands::atris::watch::{WatchArgs, watch_with};
use archie::session::Session;
use archie_agent::{Agent, Exit, state_of};
use archie_atris::catalogue_store::{CatalogueStore, audius};
use archie_atris::connector::{Answer, Connector, Fault, Http, SystemNames, Transport, VettedCall};
use archie_atris::state::AtrisState;
use archie_atris::watch::{self, Look, WatchState};
use archie_atris::{Options, agent_with};
use serde_json::json;
use superstep::Timestamp;
use superstep::checkpoint::ThreadQuery;
use superstep::store::Namespace;
use superstep_conformance::mortal::{Fate, Mortal};
use superstep_llm::BoxFuture;
use superstep_sqlite::Sqlite;

use super::lab::MODEL;
use super::server::{self, Server, ServerReply, track};
use crate::deaths::{self, Person};
use crate::kit::settings;

/// What outlives every process: a database, the server, what the model was asked.
struct World {
    folder: tempfile::TempDir,
    server: Server,
    query: &'static str,
}

impl World {
    fn new(query: &'static str) -> Self {
        Self::over(Server::start(server::audius), query)
    }

    fn over(server: Server, query: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            server,
            query,
        }
    }

    async fn home(&self, fate: &Arc<Fate>) -> App {
        let sqlite = Sqlite::open(self.folder.path().join("threads.db")).unwrap();
        let memory = Arc::new(sqlite.clone());
        let mut catalogue = audius();
        catalogue.hosts = vec![self.server.url()];
        CatalogueStore::new(memory.clone())
            .put(&catalogue)
            .await
            .unwrap();
        let store = Mortal::new(Arc::new(sqlite), fate.clone());
        let home = App::over(settings(self.folder.path()), store, memory.clone(), AGENTS).unwrap();
        let model = deaths::model(self.folder.path(), fate, &replies());
        home.models.put(MODEL, model);
        home
    }

    fn agent(&self, home: &App, fate: &Arc<Fate>) -> Arc<Agent> {
        let agent = agent_with(&home.deps(), &options(fate)).unwrap();
        agent.register(&home.runtime);
        agent
    }

    /// One process: begins, or goes on with what it finds.
    async fn live(&self, fate: &Arc<Fate>) -> Option<Exit> {
        let home = self.home(fate).await;
        let agent = self.agent(&home, fate);
        let person = Person::who(|heard| self.answer(heard));
        let session = Session {
            app: &home,
            terminal: &person,
            json: false,
        };
        let life = async {
            let thread = agent
                .thread(&home.runtime, "t", Default::default())
                .unwrap();
            match thread.state(None).await.unwrap() {
                None => {
                    session
                        .begin(
                            &agent,
                            &*thread,
                            json!({ "llm": MODEL, "query": self.query }),
                        )
                        .await
                }
                Some(_) => session.resume(&agent, &*thread).await,
            }
        };
        Box::pin(fate.lives(life)).await.map(Result::unwrap)
    }

    /// What somebody says who looks at the server where nobody knows.
    fn answer(&self, heard: &str) -> String {
        let answer = match heard {
            text if text.starts_with("track_id?") => "D7KyD",
            text if text.contains("has not been made") => "accept",
            text if text.contains("Nobody knows") && self.server.writes() > 0 => "happened",
            text if text.contains("Nobody knows") => "call",
            other => panic!("nobody knows what to say to {other:?}"),
        };
        answer.to_owned()
    }

    /// Processes that die at these points, and then one that does not.
    async fn lives(&self, deaths: &[u64]) -> u64 {
        deaths::lives(deaths, async |fate| self.live(fate).await, Exit::Done).await
    }

    async fn end(&self) -> AtrisState {
        let fate = Fate::never();
        let home = self.home(&fate).await;
        let agent = self.agent(&home, &fate);
        let thread = agent
            .thread(&home.runtime, "t", Default::default())
            .unwrap();
        let mut state: AtrisState = state_of(&*thread).await.unwrap();
        // The port is another each time.
        state.selected_host = state.selected_host.map(|_| "here".to_owned());
        state
    }

    fn asked(&self) -> usize {
        deaths::asked(self.folder.path())
    }
}

fn options(fate: &Arc<Fate>) -> Options {
    let wire = DeadlyTransport {
        http: Http::default(),
        fate: fate.clone(),
    };
    Options {
        connector: Connector::over(Arc::new(SystemNames), Arc::new(wire)),
        ..Options::default()
    }
}

struct DeadlyTransport {
    http: Http,
    fate: Arc<Fate>,
}

impl Transport for DeadlyTransport {
    fn send(&self, vetted: VettedCall) -> BoxFuture<'_, Result<Answer, Fault>> {
        Box::pin(async move {
            self.fate.point().await;
            let answer = self.http.send(vetted).await;
            self.fate.point().await;
            answer
        })
    }
}

fn replies() -> serde_json::Value {
    json!({ "replies": [{ "at": "extract_params_node", "json": { "track_id": "" } }] })
}

const READ: &str = "please show me that one track I liked so much";
const ENTITY: &str = "How many followers does RAC have?";
const WRITE: &str = "favorite track D7KyD user_id=nlGNe";

#[tokio::test]
async fn a_read_that_is_killed_at_every_point_comes_to_the_same() {
    let calm = World::new(READ);
    let points = calm.lives(&[]).await;
    let end = calm.end().await;
    assert!(
        end.message_history[1]
            .content
            .starts_with("Get Track: \"Track 1\"")
    );
    assert_eq!(
        (calm.asked(), calm.server.lines()),
        (1, vec!["GET /v1/tracks/D7KyD".to_owned()])
    );
    assert!(points > 30, "{points}");
    let (mut paid_again, mut read_again) = (0, 0);
    for death in 1..=points {
        let world = World::new(READ);
        world.lives(&[death]).await;
        assert_eq!(world.end().await, end, "death at {death} of {points}");
        let (more_asked, more_read) = (world.asked() - 1, world.server.got().len() - 1);
        assert!(
            more_asked <= 1 && more_read <= 1,
            "death at {death} of {points}: {more_asked} calls, {more_read} reads more"
        );
        paid_again += more_asked;
        read_again += more_read;
    }
    eprintln!(
        "{points} deaths, {paid_again} calls of the model paid for again, {read_again} reads again"
    );
    assert!(paid_again > 0 && read_again > 0);
}

#[tokio::test]
async fn a_write_that_is_killed_at_every_point_is_made_once() {
    let calm = World::new(WRITE);
    let points = calm.lives(&[]).await;
    assert_eq!(
        calm.server.lines(),
        ["POST /v1/tracks/D7KyD/favorites?user_id=nlGNe"]
    );
    let end = calm.end().await;
    let mut asked_about = 0;
    for death in 1..=points {
        let world = World::new(WRITE);
        world.lives(&[death]).await;
        assert_eq!(
            world.server.writes(),
            1,
            "death at {death} of {points}: {:?}",
            world.server.lines()
        );
        let came_to = world.end().await;
        match came_to == end {
            true => {}
            // What the server said is lost; a person said that it had happened.
            false => {
                asked_about += 1;
                assert!(
                    came_to.message_history[1]
                        .content
                        .contains("A person confirmed that it happened"),
                    "{came_to:?}"
                );
            }
        }
        assert_eq!(came_to.error_history, []);
    }
    eprintln!(
        "{points} deaths, one write each; {asked_about} times a person said what had become of it"
    );
    assert!(
        points > 30 && asked_about > 0 && asked_about < 5,
        "{points} {asked_about}"
    );
}

#[tokio::test]
async fn two_reads_of_one_question_that_is_killed_at_every_point_come_to_the_same() {
    let calm = World::new(ENTITY);
    let points = calm.lives(&[]).await;
    let end = calm.end().await;
    assert_eq!(end.message_history[1].content, "RAC has 4,321 followers.");
    let mut read_again = 0;
    for death in 1..=points {
        let world = World::new(ENTITY);
        world.lives(&[death]).await;
        assert_eq!(world.end().await, end, "death at {death} of {points}");
        let more = world.server.got().len() - 2;
        assert!(more <= 1, "death at {death} of {points}: {more} reads more");
        read_again += more;
    }
    eprintln!("{points} deaths, {read_again} reads again");
    assert!(points > 30 && read_again > 0);
}

#[tokio::test]
async fn a_write_that_is_killed_again_and_again_is_made_once() {
    let calm = World::new(WRITE);
    let points = calm.lives(&[]).await;
    for death in (3..points).step_by(5) {
        let world = World::new(WRITE);
        world.lives(&[death, death / 2 + 1, 6]).await;
        assert_eq!(
            world.server.writes(),
            1,
            "first death at {death} of {points}"
        );
    }
}

/// A watch over a list that is another one for every call, and what all its processes together told.
struct Watched {
    world: World,
    told: Mutex<Vec<String>>,
}

impl Watched {
    fn new() -> Self {
        let calls = AtomicUsize::new(0);
        let server = Server::start(move |_| {
            let first = calls.fetch_add(1, Ordering::SeqCst) + 1;
            let tracks: Vec<_> = (first..first + 10).map(track).collect();
            ServerReply::Json(200, json!({ "data": tracks }))
        });
        Self {
            world: World::over(server, "What are the trending tracks on Audius?"),
            told: Mutex::default(),
        }
    }

    /// One process: begins the watch, or goes on with it, until so many looks were told.
    async fn live(&self, fate: &Arc<Fate>) -> Option<Exit> {
        let home = self.world.home(fate).await;
        let person = Person::who(|heard| panic!("nobody was to be asked: {heard}"));
        let session = Session {
            app: &home,
            terminal: &person,
            json: false,
        };
        let life = async {
            let found = home.runtime.threads(&ThreadQuery::default()).await.unwrap();
            let resume = found.first().map(|row| row.thread.to_string());
            let told = match &resume {
                Some(thread) => told(&home, thread).await,
                None => 0,
            };
            let args = WatchArgs {
                query: resume.is_none().then(|| self.world.query.to_owned()),
                api: None,
                every: Duration::from_millis(1),
                looks: Some(LOOKS - told),
                resume,
                offline: false,
                json: false,
            };
            watch_with(&args, &session, &options(fate)).await
        };
        let lived = Box::pin(fate.lives(life)).await.map(Result::unwrap);
        self.told.lock().unwrap().extend(person.heard());
        lived
    }

    async fn lives(&self, deaths: &[u64]) -> u64 {
        deaths::lives(deaths, async |fate| self.live(fate).await, Exit::Done).await
    }

    /// What should have been told, in lines.
    async fn seen(&self) -> Vec<String> {
        let home = self.world.home(&Fate::never()).await;
        let rows = home.runtime.threads(&ThreadQuery::default()).await.unwrap();
        assert_eq!(rows.len(), 1);
        let thread = home.thread_of(&rows[0]).unwrap();
        let state: WatchState = state_of(&*thread).await.unwrap();
        let lines = |look: Look| {
            let came = look.came.into_iter().map(|item| format!("+ {item}"));
            let went = look.went.into_iter().map(|item| format!("- {item}"));
            look.says.into_iter().chain(came).chain(went)
        };
        state.looks.into_iter().flat_map(lines).collect()
    }
}

/// How many looks the store says were told.
async fn told(home: &App, thread: &str) -> u64 {
    let namespace = Namespace::new([watch::NAME, "told"]).unwrap();
    let item = home.memory.get(&namespace, thread, Timestamp(0)).await;
    item.unwrap().map_or(0, |item| item.value.as_u64().unwrap())
}

const LOOKS: u64 = 3;

#[tokio::test]
async fn a_watch_that_is_killed_at_every_point_tells_every_look() {
    let calm = Watched::new();
    let points = calm.lives(&[]).await;
    let seen = calm.seen().await;
    assert_eq!(*calm.told.lock().unwrap(), seen);
    assert!(points > 30 && seen.len() == 5, "{points} {seen:?}");
    let (mut told_again, mut looked_again) = (0, 0);
    for death in 1..=points {
        let watched = Watched::new();
        watched.lives(&[death]).await;
        let told = watched.told.lock().unwrap().clone();
        let mut once: Vec<String> = Vec::new();
        for line in &told {
            if !once.contains(line) {
                once.push(line.clone());
            }
        }
        assert_eq!(once, watched.seen().await, "death at {death} of {points}");
        let looked = watched.world.server.got().len();
        assert!(looked <= LOOKS as usize + 1, "death at {death}: {looked}");
        told_again += told.len() - once.len();
        looked_again += looked - LOOKS as usize;
    }
    eprintln!("{points} deaths, {looked_again} looks again, {told_again} lines told again");
    assert!(looked_again > 0);
}
