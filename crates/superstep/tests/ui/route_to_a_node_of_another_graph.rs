use superstep::NodeRef;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

const CHARGE: NodeRef<Order> = NodeRef::new("charge");

fn main() {
    let _ = Graph::<Review>::builder("review").edge(START, CHARGE);
}
