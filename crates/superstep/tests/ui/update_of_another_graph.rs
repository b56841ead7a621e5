use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

async fn judge(_: View<Review>, _: NodeCx) -> Result<OrderUpdate, NodeError> {
    Ok(OrderUpdate::default().total(1))
}

fn main() {
    let _ = Graph::<Review>::builder("review").node("judge", judge);
}
