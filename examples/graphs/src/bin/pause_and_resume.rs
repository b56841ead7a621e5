//! A thread that survives being killed and waits for a person.
//!
//! Run it: `cargo run -p example-graphs --bin pause_and_resume`
//!
//! It packs five boxes, a second each, and then asks you whether to ship them. Kill it at any moment
//! (Ctrl-C, or `kill -9`) and run it again: boxes that are packed stay packed, and the question waits.
//! The thread lives in `pause_and_resume.db`; delete that file to begin anew.

use std::io::Write as _;
use std::time::Duration;

use superstep::prelude::*;
use superstep_sqlite::Sqlite;

#[derive(Clone, Debug, Default, State)]
struct Order {
    boxes: u32,
    #[state(append)]
    packed: Vec<String>,
    shipped: Option<bool>,
}

async fn pack(order: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let mut update = OrderUpdate::default();
    for number in 1..=order.boxes {
        // What happens in a step happens once: its result is stored before the node goes on.
        let label: String = cx
            .step(format!("box {number}"), || async move {
                println!("packing box {number} …");
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(format!("box {number}"))
            })
            .await?;
        update = update.packed(label);
    }
    Ok(update)
}

async fn ship(order: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let question = format!("ship {} boxes?", order.packed.len());
    let yes: bool = cx.interrupt(Interrupt::new("ship", question)).await?;
    Ok(OrderUpdate::default().shipped(Some(yes)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("order")
        .node("pack", pack)
        .node("ship", ship)
        .edge(START, "pack")
        .edge("pack", "ship")
        .edge("ship", END)
        .build()?;
    let runtime = Runtime::new(Sqlite::open("pause_and_resume.db")?);
    let thread = runtime.thread(&graph, "order-1")?;

    let stopped = thread
        .start_or_recover(OrderUpdate::default().boxes(5))
        .await?;
    let Outcome::Paused(questions) = &stopped.outcome else {
        println!("{:?}: {:?}", stopped.outcome, stopped.state);
        return Ok(());
    };
    let asked: String = questions[0].request.decode()?;
    print!("{asked} [y/n] ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        println!("\nno answer; the question waits in pause_and_resume.db");
        return Ok(());
    }
    let done = thread
        .answer(questions[0].id, line.trim().starts_with('y'))
        .await?;
    if let Some(done) = done {
        println!(
            "{:?}: packed {:?}, shipped {:?}",
            done.outcome, done.state.packed, done.state.shipped
        );
    }
    Ok(())
}
