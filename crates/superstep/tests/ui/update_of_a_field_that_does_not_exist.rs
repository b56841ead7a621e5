use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

fn main() {
    let _ = OrderUpdate::default().totl(1);
}
