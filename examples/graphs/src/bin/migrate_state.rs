//! Migration: a thread that paused under one version of the state is answered under the next.
//!
//! Run it: `cargo run -p example-graphs --bin migrate_state`

use superstep::error::MigrationError;
use superstep::prelude::*;
use superstep::state::Fields;

/// The program as it was first deployed.
mod first {
    use superstep::prelude::*;

    #[derive(Clone, Debug, Default, State)]
    pub(super) struct Order {
        pub(super) item: String,
        /// In euros, as text: a mistake.
        pub(super) price: String,
    }

    async fn approve(order: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
        let text = format!("buy {} for {}?", order.item, order.price);
        let _: bool = cx.interrupt(Interrupt::new("approve", text)).await?;
        Ok(OrderUpdate::default())
    }

    pub(super) fn graph() -> Result<Graph<Order>, superstep::error::BuildError> {
        let builder = Graph::builder("order").node("approve", approve);
        builder.edge(START, "approve").edge("approve", END).build()
    }
}

/// The next version: the price is a number of cents under another name.
#[derive(Clone, Debug, Default, State)]
#[state(version = 2, migrate = migrate)]
struct Order {
    item: String,
    cents: i64,
    approved: bool,
}

fn migrate(_from: u32, fields: &mut Fields) -> Result<(), MigrationError> {
    fields.rename("price", "cents");
    fields.change("cents", |price| {
        let euros: f64 = price.as_str().unwrap_or_default().parse().unwrap_or(0.0);
        ((euros * 100.0).round() as i64).into()
    });
    Ok(())
}

async fn approve(order: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
    let text = format!("buy {} for {} cents?", order.item, order.cents);
    let approved: bool = cx.interrupt(Interrupt::new("approve", text)).await?;
    Ok(OrderUpdate::default().approved(approved))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new(Memory::default());
    let before = runtime.thread(&first::graph()?, "order-1")?;
    let input = first::OrderUpdate::default().item("a lamp").price("19.90");
    before.start(input).await?;
    println!("paused by the first version, with the price as text");

    // Deployed: the same name of the graph and of the node, another state.
    let builder = Graph::builder("order").node("approve", approve);
    let graph = builder
        .edge(START, "approve")
        .edge("approve", END)
        .build()?;
    let thread = runtime.thread(&graph, "order-1")?;
    let Some(stopped) = thread.answer_only(true).await? else {
        return Err("the thread runs elsewhere".into());
    };
    println!("finished by the next version: {:?}", stopped.state);
    Ok(())
}
