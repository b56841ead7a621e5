//! `analyze` killed everywhere: before and after every call of the store and of the model, and in the writing of its file.
//! What goes on after it is a new process over the same database, and comes to the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use archie::app::App;
use archie::commands::analyze::{AnalyzeArgs, handle_analyze_command};
use archie::session::Session;
use archie_agent::user_folder::UserFolder;
use archie_agent::{Exit, state_of};
use archie_analyze::result::changes;
use archie_analyze::state::AppState;
use serde_json::{Value as Json, json};
use superstep::Seq;
use superstep::checkpoint::ThreadQuery;
use superstep::checkpoint::format::Change as Logged;
use superstep_conformance::mortal::{Fate, KillSweep};

use crate::deaths::{self, MODEL, Person};

/// What outlives every process: a database, a folder of notes, what the model was asked.
struct World {
    folder: tempfile::TempDir,
}

/// How it all ended.
#[derive(Debug, PartialEq)]
struct End {
    state: AppState,
    /// Every entry of the log.
    history: Vec<Json>,
    /// Every file beside the notes.
    files: BTreeMap<String, String>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = Self { folder };
        fs::create_dir(world.notes()).unwrap();
        for (name, text) in [
            ("a.md", "# Orders\n\nTen thousand orders a day.\n"),
            ("b.txt", "We have one machine.\n"),
            ("analysis_result.md", "What came out last year.\n"),
        ] {
            fs::write(world.notes().join(name), text).unwrap();
        }
        world
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn home(&self, fate: &Arc<Fate>) -> App {
        deaths::home(self.folder.path(), fate, &replies())
    }

    /// One process: begins, or goes on with what it finds.
    async fn live(&self, fate: &Arc<Fate>) -> Option<Exit> {
        let home = self.home(fate);
        let args = AnalyzeArgs {
            query: Some("Choose a queue".to_owned()),
            inputs: Some(self.notes()),
            recursive: false,
            images: false,
            memory_file: None,
            recheck: None,
            json: false,
        };
        let begin =
            async |session: &Session<'_>| handle_analyze_command(&args, MODEL, session).await;
        deaths::live(&home, &Person::who(answer), fate, begin).await
    }

    /// Processes that die at these points, and then one that does not.
    async fn lives(&self, deaths: &[u64]) -> u64 {
        deaths::lives(deaths, async |fate| self.live(fate).await, Exit::Done).await
    }

    async fn end(&self) -> End {
        let home = self.home(&Fate::never());
        let found = home.runtime.threads(&ThreadQuery::default()).await.unwrap();
        assert_eq!(found.len(), 1, "one analysis is one thread");
        let thread = home.thread_of(&found[0]).unwrap();
        let here = self.folder.path().display().to_string();
        let mut state: AppState = state_of(&*thread).await.unwrap();
        state.inputs.folder.clear();
        state.inputs.root.clear();
        let history = thread.history(Seq(0), 1_000).await.unwrap();
        let told = |json: Json| -> Json {
            serde_json::from_str(&json.to_string().replace(&here, "HERE")).unwrap()
        };
        End {
            state,
            history: history
                .iter()
                .map(|past| {
                    let changes: Vec<_> = past.entry.changes.iter().map(logged).collect();
                    told(json!([
                        past.seq.0,
                        format!("{:?}", past.entry.kind),
                        changes
                    ]))
                })
                .collect(),
            files: fs::read_dir(self.notes())
                .unwrap()
                .map(|file| file.unwrap())
                .map(|file| {
                    let name = file.file_name().into_string().unwrap();
                    (name, fs::read_to_string(file.path()).unwrap())
                })
                .collect(),
        }
    }

    /// How often the model was asked.
    fn asked(&self) -> usize {
        deaths::asked(self.folder.path())
    }
}

/// A change in the log, without ids and times, which differ each time.
fn logged(change: &Logged) -> Json {
    match change {
        Logged::FrameOpened(opened) => {
            json!({ "input": opened.input.as_ref().map(|input| input.decode::<Json>().unwrap()) })
        }
        Logged::FrameAdvanced(advanced) => advanced
            .writes
            .iter()
            .map(|write| {
                let updates = write.updates.iter();
                let updates: Vec<Json> = updates.map(|update| update.decode().unwrap()).collect();
                json!({ "node": write.node.to_string(), "updates": updates, "events": write.events.len() })
            })
            .collect(),
        Logged::RunStarted(_) => json!("started"),
        Logged::RunResumed(_) => json!("resumed"),
        other => panic!("nothing of the kind happens here: {other:?}"),
    }
}

/// What somebody says to a question, however often it is asked.
fn answer(heard: &str) -> String {
    let question = heard.trim_start_matches("Agent: ");
    let found = TURNS.iter().find(|(asked, _)| *asked == question);
    let (_, answer) = found.unwrap_or_else(|| panic!("nobody knows what to say to {heard:?}"));
    (*answer).to_owned()
}

/// What the agent asks, and what it is told.
const TURNS: [(&str, &str); 3] = [
    ("Is ordering required?", "yes, per customer"),
    ("May it be delivered twice?", "not done yet"),
    ("I propose one queue. Approved?", "SOLUTION APPROVED"),
];

fn replies() -> Json {
    let source = json!({ "claim": "One machine is enough.", "file": "b.txt", "line": 1, "quote": "We have one machine" });
    json!({ "replies": [
        { "at": "initial", "text": TURNS[0].0 },
        { "at": "followup", "expect": TURNS[0].1, "text": TURNS[1].0 },
        { "at": "followup", "expect": TURNS[1].1, "text": TURNS[2].0 },
        { "at": "final", "json": {
            "assumptions": [], "components": [{ "claim": "A queue." }], "alternatives": [],
            "decisions": [source], "open_questions": []
        } }
    ] })
}

/// Processes that are killed, each over what the one before left.
fn sweep() -> KillSweep<impl Fn() -> World, impl AsyncFn(&World, &Arc<Fate>) -> Option<Exit>> {
    KillSweep::new(World::new, async |world: &World, fate: &Arc<Fate>| {
        world.live(fate).await
    })
}

/// The calm life, with how many points it has and how often it asks.
async fn calm() -> (End, u64, usize) {
    let world = World::new();
    let points = world.lives(&[]).await;
    let end = world.end().await;
    assert!(end.files["analysis_result.md"].contains("One machine is enough."));
    assert_eq!(
        end.files["analysis_result.1.md"],
        "What came out last year.\n"
    );
    (end, points, world.asked())
}

#[tokio::test]
async fn killed_at_every_point_it_comes_to_the_same_and_pays_for_one_call_more_at_most() {
    let (calm, _, asked) = calm().await;
    let mut paid_again = 0;
    let report = sweep().run(async |trial| {
        assert_eq!(trial.world.end().await, calm);
        let more = trial.world.asked() - asked;
        assert!(more <= trial.kills.len(), "{more} calls more");
        paid_again += more;
    });
    let report = report.await.unwrap();
    assert_eq!(report.calm, Some(Exit::Done));
    let (points, kills) = (report.points, report.kills);
    // A process whose tasks take turns in another order has a few points fewer, and ends before its kill.
    assert!(points > 60 && kills + 8 > points, "{kills} of {points}");
    eprintln!("{kills} deaths, {paid_again} calls paid for again");
    // Between a model's answer and the commit of it are a few points, for each of four calls.
    assert!((4..=16).contains(&paid_again), "{paid_again}");
}

#[tokio::test]
async fn killed_while_it_writes_its_file_it_comes_to_the_same() {
    let (calm, points, asked) = calm().await;
    let output = &calm.state.analysis_output;
    for made in 0..=2 {
        let world = World::new();
        // Where nothing is left to do but the file.
        let fate = Fate::at(points);
        world.live(&fate).await;
        deaths::gone(&fate).await;
        let folder = UserFolder::open(&world.notes()).unwrap();
        let changes = changes(output, &folder).unwrap();
        assert_eq!(changes.len(), 2);
        // Each is made as a whole or not at all, so there is nothing in between.
        changes[..made]
            .iter()
            .for_each(|change| change.make(&folder).unwrap());
        // The second finds everything done.
        for _ in 0..2 {
            world.lives(&[]).await;
            assert_eq!(world.end().await, calm, "{made} changes were made");
        }
        assert_eq!(world.asked(), asked);
    }
}

#[tokio::test]
async fn killed_again_and_again_it_comes_to_the_same() {
    let (calm, _, asked) = calm().await;
    let report = sweep().repeated(10, 1).run(async |trial| {
        assert_eq!(trial.world.end().await, calm);
        assert!(trial.world.asked() <= asked + trial.kills.len());
    });
    let kills = report.await.unwrap().kills;
    assert!(kills > 10, "{kills}");
}
