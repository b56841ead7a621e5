use superstep::prelude::*;

#[derive(Clone, Debug, Default)]
struct Review {
    verdict: String,
}

fn main() {
    let _ = Graph::<Review>::builder("review");
}
