//! `docs` killed everywhere: before and after every call of the store and of the model, and between the files it writes. What goes
//! on after it is a new process over the same database, and comes to the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use archie::app::App;
use archie::commands::docs::{DocsArgs, handle_docs_command};
use archie::session::Session;
use archie_agent::user_folder::UserFolder;
use archie_agent::{Exit, state_of};
use archie_docs::pages::changes;
use archie_docs::scan::{Progress, ScanOptions, scan};
use archie_docs::state::DocsState;
use serde_json::json;
use superstep::checkpoint::ThreadQuery;
use superstep_conformance::mortal::Fate;

use super::kit::{replies, repository};
use crate::deaths::{self, MODEL, Person};

struct World {
    folder: tempfile::TempDir,
}

/// How it all ended. The order in which agents that work side by side came to it differs each time; what they came to does not.
#[derive(Debug, PartialEq)]
struct End {
    state: DocsState,
    files: BTreeMap<String, String>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        Self { folder }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("repo/.arch-docs")
    }

    fn home(&self, fate: &Arc<Fate>) -> App {
        let mut all = replies("file-structure", &[62, 85], &[4]);
        all.extend(replies("dependency-analyzer", &[91], &[]));
        deaths::home(self.folder.path(), fate, &json!({ "replies": all }))
    }

    async fn live(&self, fate: &Arc<Fate>) -> Option<Exit> {
        let home = self.home(fate);
        let args = DocsArgs {
            folder: self.folder.path().join("repo"),
            agents: vec![
                "file-structure".to_owned(),
                "dependency-analyzer".to_owned(),
            ],
            gate: true,
            ..DocsArgs::default()
        };
        let begin = async |session: &Session<'_>| handle_docs_command(&args, MODEL, session).await;
        let accepts = Person::who(|_| "accept".to_owned());
        deaths::live(&home, &accepts, fate, begin).await
    }

    /// Processes that die at these points, and then one that does not.
    async fn lives(&self, deaths: &[u64]) -> u64 {
        deaths::lives(deaths, async |fate| self.live(fate).await, Exit::Done).await
    }

    async fn state(&self) -> DocsState {
        let home = self.home(&Fate::never());
        let found = home.runtime.threads(&ThreadQuery::default()).await.unwrap();
        assert_eq!(found.len(), 1, "one documentation is one thread");
        let thread = home.thread_of(&found[0]).unwrap();
        state_of(&*thread).await.unwrap()
    }

    async fn end(&self) -> End {
        let state = serde_json::to_string(&self.state().await).unwrap();
        let here = self
            .folder
            .path()
            .canonicalize()
            .unwrap()
            .display()
            .to_string();
        let files = fs::read_dir(self.output()).unwrap().map(|file| {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            (name, fs::read_to_string(file.path()).unwrap())
        });
        End {
            state: serde_json::from_str(&state.replace(&here, "HERE")).unwrap(),
            files: files.collect(),
        }
    }

    fn asked(&self) -> usize {
        deaths::asked(self.folder.path())
    }
}

/// The calm life, with how many points it has and how often it asks.
async fn calm() -> (End, u64, usize) {
    let world = World::new();
    let points = world.lives(&[]).await;
    let end = world.end().await;
    assert_eq!(end.files.len(), 5, "{:?}", end.files.keys());
    assert!(end.files["file-structure.md"].contains("Text 1 about `Cart`"));
    assert_eq!(world.asked(), 7);
    (end, points, world.asked())
}

#[tokio::test]
async fn killed_at_every_point_it_comes_to_the_same_and_pays_only_for_calls_in_flight() {
    let (calm, points, asked) = calm().await;
    assert!(points > 60, "{points}");
    let mut paid_again = 0;
    for death in 1..=points {
        let world = World::new();
        world.lives(&[death]).await;
        assert_eq!(world.end().await, calm, "death at {death} of {points}");
        let more = world.asked() - asked;
        assert!(
            more <= 2,
            "two agents work side by side; death at {death} of {points}: {more} calls more"
        );
        paid_again += more;
    }
    eprintln!("{points} deaths, {paid_again} calls paid for again");
    assert!(paid_again >= 7, "{paid_again}");
}

#[tokio::test]
async fn killed_while_it_writes_its_pages_it_comes_to_the_same() {
    let (calm, points, asked) = calm().await;
    for made in 0..=calm.files.len() {
        let world = World::new();
        // Where nothing is left to do but the files.
        let fate = Fate::at(points);
        world.live(&fate).await;
        deaths::gone(&fate).await;
        let state = world.state().await;
        let options = ScanOptions {
            output: Some(".arch-docs".to_owned()),
            ..ScanOptions::default()
        };
        let root = world.folder.path().join("repo").canonicalize().unwrap();
        let tree = scan(&root, &options, &Progress::default()).unwrap();
        fs::create_dir_all(world.output()).unwrap();
        let folder = UserFolder::open(&world.output().canonicalize().unwrap()).unwrap();
        let changes = changes(&state, &tree, &folder).unwrap();
        assert_eq!(changes.len(), calm.files.len());
        // Each is made as a whole or not at all, so there is nothing in between.
        changes[..made]
            .iter()
            .for_each(|change| change.make(&folder).unwrap());
        // The second finds everything done.
        for _ in 0..2 {
            world.lives(&[]).await;
            assert_eq!(world.end().await, calm, "{made} files were written");
        }
        assert_eq!(world.asked(), asked);
    }
}

#[tokio::test]
async fn killed_again_and_again_it_comes_to_the_same() {
    let (calm, points, asked) = calm().await;
    for death in (5..points).step_by(11) {
        let world = World::new();
        world.lives(&[death, death / 2, 7]).await;
        assert_eq!(
            world.end().await,
            calm,
            "first death at {death} of {points}"
        );
        assert!(world.asked() <= asked + 6);
    }
}
