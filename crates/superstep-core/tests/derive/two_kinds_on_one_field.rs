use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(append, topic)]
    notes: Vec<String>,
    #[state(ephemeral)]
    #[state(untracked)]
    hint: Option<String>,
}

fn main() {}
