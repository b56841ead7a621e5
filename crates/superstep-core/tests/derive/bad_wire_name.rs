use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(name = "user-input")]
    user_input: String,
    #[state(name = "")]
    topic: String,
    größe: u8,
}

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core, rename_all = "kebab-case")]
struct Kebab {
    user_input: String,
}

fn main() {}
