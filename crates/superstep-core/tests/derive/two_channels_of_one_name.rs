use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core, rename_all = "camelCase", removed("topic"))]
struct Review {
    topic: String,
    user_input: String,
    #[state(name = "userInput")]
    input: String,
}

fn main() {}
