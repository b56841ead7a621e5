//! `sheet` killed everywhere: before and after every call of the store, the model and the sandbox, and in the writing of its
//! files. What goes on after it is a new process over the same database and the same folder, and comes to the same.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use archie_agent::ModelRegistry;
use archie_sheet::changes::Verdict;
use archie_sheet::snapshots::SnapshotStore;
use archie_sheet::state::GraphState;
use archie_sheet::tools::{Sandboxes, ToolDeps};
use archie_sheet::{output, service};
use serde_json::{Value as Json, json};
use superstep::{Outcome, Runtime, Seq, Thread, ThreadId};
use superstep_conformance::mortal::{Fate, KillSweep, Mortal, Trial};
use superstep_sqlite::Sqlite;

use super::kit::{COUNT, Fake, MODEL, code, deps, order, sales, says, with_informer};
use crate::deaths;

/// What outlives every process: a database, a folder of workbooks, what the model was asked and what code was run.
struct World {
    folder: tempfile::TempDir,
    ran: Arc<Mutex<Vec<String>>>,
}

/// How it all ended.
#[derive(Debug, PartialEq)]
struct End {
    state: Json,
    entries: usize,
    files: BTreeMap<String, Vec<u8>>,
}

fn replies() -> Json {
    json!([
        { "at": "planner_node", "tool_calls": [{ "id": "c1", "name": "Informer", "args": { "question": "Which products?" } }] },
        { "at": "informer_node", "json": { "action": "select", "sql": "SELECT nothing" } },
        { "at": "informer_node", "json": { "action": "select", "sql": "SELECT DISTINCT \"Product\" FROM \"Sales\"" } },
        code("fail KeyError: 'product'"),
        code(COUNT),
        code("print four"),
        says("Finish: four products")
    ])
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            ran: Arc::default(),
        };
        fs::write(world.folder.path().join("sales.xlsx"), sales()).unwrap();
        world
    }

    fn snapshots(&self) -> SnapshotStore {
        SnapshotStore::under(self.folder.path())
    }

    fn thread(&self, fate: &Arc<Fate>) -> Thread<GraphState> {
        let sqlite = Sqlite::open(self.folder.path().join("threads.db")).unwrap();
        let store = Mortal::new(Arc::new(sqlite), fate.clone());
        let models = Arc::new(ModelRegistry::default());
        let replies = json!({ "replies": replies() });
        models.put(MODEL, deaths::model(self.folder.path(), fate, &replies));
        let sandboxes = Arc::new(Sandboxes::only(Arc::new(Fake::new(fate, &self.ran))));
        let bench = ToolDeps {
            sandboxes,
            snapshots: self.snapshots(),
        };
        let graph = archie_sheet::graph_with(&deps(self.folder.path(), models), bench).unwrap();
        let runtime = Runtime::new(store);
        runtime.register(&graph);
        runtime.thread(&graph, "t1").unwrap()
    }

    /// One process: begins, or goes on with what it finds, answers what it is asked, and writes the files.
    async fn live(&self, fate: &Arc<Fate>) -> Option<()> {
        let thread = self.thread(fate);
        let life = async {
            let opened = service::open(
                &self.folder.path().join("sales.xlsx"),
                &self.snapshots(),
                thread.id(),
            )
            .unwrap();
            let is_over = thread.state().await.unwrap().is_some_and(|state| {
                let values: GraphState = state.values.decode().unwrap();
                values.verdict.is_some()
            });
            let open = thread.interrupts().await.unwrap();
            let mut stopped = match (is_over, open.first()) {
                (true, _) => None,
                (false, Some(open)) => {
                    let answer = [(open.interrupt.id, Verdict::accept())];
                    let ran = thread.answer_as("ada", answer).await.unwrap();
                    ran.map(|ran| ran.outcome)
                }
                (false, None) => {
                    let order = with_informer(order());
                    let ran = service::run_analysis(&thread, &order, &opened).await;
                    Some(ran.unwrap().outcome)
                }
            };
            while let Some(Outcome::Paused(questions)) = stopped {
                let answer = [(questions[0].id, Verdict::accept())];
                let ran = thread.answer_as("ada", answer).await.unwrap();
                stopped = ran.map(|ran| ran.outcome);
            }
            let state = thread.state().await.unwrap().unwrap();
            let state: GraphState = state.values.decode().unwrap();
            let files = output::files(&self.snapshots(), thread.id(), &state).unwrap();
            for (name, bytes) in files {
                fate.point().await;
                output::write(&[(name, bytes)].into(), &self.folder.path().join("out")).unwrap();
                fate.point().await;
            }
        };
        Box::pin(fate.lives(life)).await
    }

    /// Processes that die at these points, and then one that does not.
    async fn lives(&self, deaths: &[u64]) -> u64 {
        deaths::lives(deaths, async |fate| self.live(fate).await, ()).await
    }

    async fn end(&self) -> End {
        let thread = self.thread(&Fate::never());
        let state: Json = thread
            .state()
            .await
            .unwrap()
            .unwrap()
            .values
            .decode()
            .unwrap();
        // Ids of messages differ each time, and so does the folder.
        let here = self.folder.path().display().to_string();
        let mut state: Json =
            serde_json::from_str(&state.to_string().replace(&here, "HERE")).unwrap();
        for message in state["messages"].as_array_mut().unwrap() {
            message.as_object_mut().unwrap().remove("id");
            for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                call.as_object_mut().unwrap().remove("id");
            }
            message.as_object_mut().unwrap().remove("tool_call_id");
        }
        let files = fs::read_dir(self.folder.path().join("out"))
            .unwrap()
            .map(|file| file.unwrap());
        End {
            state,
            entries: thread.history(Seq(0), 1_000).await.unwrap().len(),
            files: files
                .map(|file| {
                    let text = fs::read(file.path()).unwrap();
                    let name = file.file_name().into_string().unwrap();
                    let text = match name.ends_with(".md") {
                        true => String::from_utf8(text)
                            .unwrap()
                            .replace(&here, "HERE")
                            .into_bytes(),
                        false => text,
                    };
                    (name, text)
                })
                .collect(),
        }
    }

    fn asked(&self) -> usize {
        deaths::asked(self.folder.path())
    }

    /// How often each code was run.
    fn runs(&self, code: &str) -> usize {
        self.ran
            .lock()
            .unwrap()
            .iter()
            .filter(|ran| *ran == code)
            .count()
    }
}

/// Says where two ends differ, for they are long.
fn is_same(end: &End, calm: &End) {
    for (field, value) in calm.state.as_object().unwrap() {
        assert_eq!(end.state[field], *value, "{field}");
    }
    for (name, bytes) in &calm.files {
        assert!(end.files.get(name) == Some(bytes), "{name}");
    }
    assert_eq!(end, calm);
}

const CODES: [&str; 4] = [
    "workbook\n",
    "fail KeyError: 'product'",
    COUNT,
    "print four",
];

async fn calm() -> (End, u64, usize) {
    let world = World::new();
    let points = world.lives(&[]).await;
    let end = world.end().await;
    assert_eq!(
        end.files.keys().collect::<Vec<_>>(),
        ["changes.txt", "code.py", "report.md", "workbook_new.xlsx"]
    );
    for code in CODES {
        assert_eq!(world.runs(code), 1, "{code}");
    }
    (end, points, world.asked())
}

/// Processes that are killed, each over what the one before left.
fn sweep() -> KillSweep<impl Fn() -> World, impl AsyncFn(&World, &Arc<Fate>) -> Option<()>> {
    KillSweep::new(World::new, async |world: &World, fate: &Arc<Fate>| {
        world.live(fate).await
    })
}

#[tokio::test]
async fn killed_at_every_point_it_comes_to_the_same_and_repeats_one_thing_at_most() {
    let (calm, _, asked) = calm().await;
    let (mut paid_again, mut run_again) = (0, 0);
    let report = sweep().run(async |trial| {
        let Trial { world, kills, .. } = *trial;
        is_same(&world.end().await, &calm);
        let more = world.asked() - asked;
        let again: usize = CODES.iter().map(|code| world.runs(code) - 1).sum();
        // The first run of code opens and saves the workbook in the same step, and is repeated with it.
        assert!(
            more <= kills.len() && again <= 2 * kills.len(),
            "{more} calls and {again} runs more"
        );
        paid_again += more;
        run_again += again;
    });
    let report = report.await.unwrap();
    let (points, kills) = (report.points, report.kills);
    // A process whose tasks take turns in another order has a few points fewer, and ends before its kill.
    assert!(points > 60 && kills + 8 > points, "{kills} of {points}");
    eprintln!(
        "{kills} deaths, {paid_again} calls paid for again, {run_again} pieces of code run again"
    );
    assert!(
        paid_again >= 7 && run_again >= 4,
        "some points are inside of a call: {paid_again}, {run_again}"
    );
}

#[tokio::test]
async fn killed_during_step_3_it_does_not_run_step_2_again() {
    let (_, points, _) = calm().await;
    for death in 1..=points {
        let world = World::new();
        let fate = Fate::at(death);
        world.live(&fate).await;
        deaths::gone(&fate).await;
        let thread = world.thread(&Fate::never());
        let Some(state) = thread.state().await.unwrap() else {
            continue;
        };
        let state: GraphState = state.values.decode().unwrap();
        let is_done = |code: &str| state.journal.iter().any(|done| done.input == code);
        let before: Vec<_> = CODES
            .iter()
            .filter(|code| is_done(code))
            .map(|code| (*code, world.runs(code)))
            .collect();
        world.lives(&[]).await;
        for (code, runs) in before {
            assert_eq!(
                world.runs(code),
                runs,
                "death at {death}: {code:?} was run again"
            );
        }
    }
}

#[tokio::test]
async fn killed_again_and_again_it_comes_to_the_same() {
    let (calm, _, asked) = calm().await;
    let report = sweep().repeated(10, 1).run(async |trial| {
        is_same(&trial.world.end().await, &calm);
        assert!(trial.world.asked() <= asked + trial.kills.len());
    });
    let kills = report.await.unwrap().kills;
    assert!(kills > 10, "{kills}");
}

#[test]
fn a_file_that_is_half_written_is_never_taken_for_one() {
    let world = World::new();
    let snapshots = world.snapshots();
    let thread = ThreadId::new("t1").unwrap();
    let id = snapshots.put_book(&thread, &sales()).unwrap();
    let folder = world.folder.path().join("sheets/t1");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["sum", "xlsx"].map(|end| format!("{id}.{end}")));
    // Whoever died while writing left something beside it, under a name that nobody asks for.
    fs::write(folder.join(".tmpXXXX"), b"half").unwrap();
    assert_eq!(snapshots.book(&thread, &id).unwrap(), sales());
}
