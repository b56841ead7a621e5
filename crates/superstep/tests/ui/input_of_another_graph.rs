use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

#[derive(Clone, Debug, Default, State)]
struct Order {
    total: i64,
}

async fn start(thread: Thread<Review>) {
    let _ = thread.start(OrderUpdate::default()).await;
}

fn main() {
    let _ = start;
}
