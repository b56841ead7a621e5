use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

async fn charge(mut order: View<Order>, _: NodeCx) -> Result<OrderUpdate, NodeError> {
    order.total += 1;
    Ok(OrderUpdate::default())
}

fn main() {
    let _ = Graph::builder("order").node("charge", charge);
}
