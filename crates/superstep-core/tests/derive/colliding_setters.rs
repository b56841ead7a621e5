use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(append)]
    notes: Vec<String>,
    notes_all: bool,
    default: String,
}

fn main() {}
