use superstep::NodeRef;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

const JUDGE: NodeRef<Review> = NodeRef::new("the judge");

fn main() {
    let _ = Graph::<Review>::builder("review").edge(START, JUDGE);
}
