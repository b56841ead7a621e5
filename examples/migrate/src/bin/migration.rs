//! A paused thread of an older version of the state.

use superstep::error::{BuildError, MigrationError};
use superstep::prelude::*;
use superstep::state::Fields;
use superstep_sqlite::Sqlite;

mod v1 {
    use superstep::prelude::*;

    #[derive(Clone, Debug, Default, State)]
    pub struct Letter {
        pub name: String,
        pub letter: String,
    }

    pub async fn write(state: View<Letter>, cx: NodeCx) -> Result<LetterUpdate, NodeError> {
        let greeting: String = cx
            .interrupt(Interrupt::new("greet", "Which greeting?"))
            .await?;
        Ok(LetterUpdate::default().letter(format!("{greeting} {}", state.name)))
    }
}

#[derive(Clone, Debug, Default, State)]
#[state(version = 2, migrate = rename)]
struct Letter {
    full_name: String,
    letter: String,
}

fn rename(_from: u32, fields: &mut Fields) -> Result<(), MigrationError> {
    fields.rename("name", "full_name");
    Ok(())
}

async fn write(state: View<Letter>, cx: NodeCx) -> Result<LetterUpdate, NodeError> {
    let greeting: String = cx
        .interrupt(Interrupt::new("greet", "Which greeting?"))
        .await?;
    Ok(LetterUpdate::default().letter(format!("{greeting} {}", state.full_name)))
}

fn graph<S: State>(node: impl Node<S>) -> Result<Graph<S>, BuildError> {
    Graph::builder("letter")
        .node("write", node)
        .edge(START, "write")
        .edge("write", END)
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new(Sqlite::in_memory()?);
    let before = runtime.thread(&graph(v1::write)?, "old")?;
    before
        .start(v1::LetterUpdate::default().name("Kim"))
        .await?;
    let graph = graph(write)?;
    let old = runtime.thread(&graph, "old")?;
    println!(
        "old thread: {}",
        old.resume_with("Dear").await?.state.letter
    );
    let new = runtime.thread(&graph, "new")?;
    new.start(LetterUpdate::default().full_name("Kim Larsen"))
        .await?;
    println!(
        "new thread: {}",
        new.resume_with("Dear").await?.state.letter
    );
    Ok(())
}
