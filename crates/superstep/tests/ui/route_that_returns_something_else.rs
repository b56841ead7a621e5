use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

fn main() {
    let _ = Graph::<Review>::builder("review").route("judge", &["approve", END], |review| {
        review.verdict.is_empty()
    });
}
