//! Goes on with a thread wherever it stands.

use crate::agents::analyze;
use crate::cli::args::ThreadArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

pub(super) async fn run(args: &ThreadArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let (thread, row) = home.find(&args.thread).await?;
    match row.graph.as_str() {
        analyze::NAME => analyze::command::go_on(&thread.id(), home, say, args.json).await,
        other => anyhow::bail!("`{other}` cannot be gone on with from here"),
    }
}
