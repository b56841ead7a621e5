use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

async fn charge(_: View<Order>) -> Result<OrderUpdate, NodeError> {
    Ok(OrderUpdate::default().total(1))
}

fn main() {
    let _ = Graph::<Order>::builder("order").node("charge", charge);
}
