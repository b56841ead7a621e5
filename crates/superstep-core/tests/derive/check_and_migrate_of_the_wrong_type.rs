use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core, version = 2, migrate = migrate, check = check)]
struct Review {
    topic: String,
}

fn migrate(_: &mut superstep_core::state::Fields) {}

fn check(_: &Review) -> bool {
    true
}

fn main() {}
