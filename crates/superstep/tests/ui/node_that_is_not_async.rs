use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

fn charge(_: View<Order>, _: NodeCx) -> Result<OrderUpdate, NodeError> {
    Ok(OrderUpdate::default().total(1))
}

fn main() {
    let _ = Graph::builder("order").node("charge", charge);
}
