use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(append)]
    notes: String,
    #[state(messages)]
    messages: Option<Vec<String>>,
    #[state(topic)]
    alerts: [u8; 4],
}

fn main() {}
