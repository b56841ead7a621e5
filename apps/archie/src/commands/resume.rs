//! Goes on with a thread wherever it stands, and starts one of any agent.

use anyhow::Context;
use serde_json::Value as Json;

use crate::cli::args::{RunArgs, ThreadArgs};
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;
use crate::talk::Talk;

pub(super) async fn resume(args: &ThreadArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let (thread, row) = home.find(&args.thread).await?;
    let agent = home.agent(&row.graph)?;
    let talk = Talk {
        home,
        say,
        json: args.json,
    };
    talk.go_on(&**agent, &*thread).await
}

pub(super) async fn run(args: &RunArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let agent = home.agent(&args.agent)?;
    let input: Json = serde_json::from_str(&args.input)
        .context("--input is not JSON; give an object of fields of the agent's state")?;
    let talk = Talk {
        home,
        say,
        json: args.json,
    };
    let thread = talk.new_thread(&**agent, &args.title)?;
    talk.tell(&format!("thread {}", thread.id()));
    talk.begin(&**agent, &*thread, input).await
}
