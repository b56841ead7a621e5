//! A hundred pieces of work at once, results in order, and one that fails while its siblings are kept.
//!
//! Run it: `cargo run -p example-graphs --bin fan_out`

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Report {
    chapters: u32,
    #[state(append)]
    words: Vec<u32>,
    #[state(reduce = u32::saturating_add)]
    total: u32,
}

/// What is sent to each worker: any type that serde can store.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Chapter {
    number: u32,
}

const COUNT: SendTo<Chapter> = SendTo::new("count");

static COUNTED: AtomicU32 = AtomicU32::new(0);
static BROKEN: AtomicU32 = AtomicU32::new(1);

async fn split(report: View<Report>, _cx: NodeCx) -> Result<Command<Report>, NodeError> {
    let nothing_new = Command::update(ReportUpdate::default());
    Ok((1..=report.chapters).fold(nothing_new, |command, number| {
        command.send(&COUNT, Chapter { number })
    }))
}

async fn count(chapter: Chapter, _cx: NodeCx) -> Result<ReportUpdate, NodeError> {
    // Later chapters are done sooner; results come in the order of the sends all the same.
    tokio::time::sleep(Duration::from_millis(
        200_u64.saturating_sub(u64::from(chapter.number)),
    ))
    .await;
    if chapter.number == 42 && BROKEN.load(Ordering::Relaxed) == 1 {
        return Err(NodeError::fatal("chapter 42 is missing"));
    }
    COUNTED.fetch_add(1, Ordering::Relaxed);
    Ok(ReportUpdate::default()
        .words(chapter.number * 10)
        .total(chapter.number * 10))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("report")
        .node("split", split)
        .map_node(&COUNT, count)
        .edge(START, "split")
        .commands("split", &["count"])
        .edge("count", END)
        .build()?;
    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "report")?;

    let begun = Instant::now();
    let failed = thread.start(ReportUpdate::default().chapters(100)).await?;
    let Outcome::Failed(failures) = &failed.outcome else {
        return Err("chapter 42 should be missing".into());
    };
    println!("after {:?}: {}", begun.elapsed(), failures[0]);
    println!(
        "{} chapters are counted and kept",
        COUNTED.load(Ordering::Relaxed)
    );

    BROKEN.store(0, Ordering::Relaxed);
    let done = thread.resume().await?;
    println!(
        "{:?}: {} words, {} chapters were counted in all",
        done.outcome,
        done.state.total,
        COUNTED.load(Ordering::Relaxed)
    );
    println!("in order: {:?} …", &done.state.words[..5]);
    Ok(())
}
