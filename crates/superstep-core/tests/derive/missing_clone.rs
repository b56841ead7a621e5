use superstep_core::State;

#[derive(Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    topic: String,
}

fn main() {}
