use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core, version = 2, version = 3)]
struct Review {
    #[state(name = "a", name = "b")]
    topic: String,
}

fn main() {}
