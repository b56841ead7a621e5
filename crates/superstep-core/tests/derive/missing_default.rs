use superstep_core::State;

#[derive(Clone, Debug, State)]
#[state(crate = superstep_core)]
struct Review {
    topic: String,
}

fn main() {}
