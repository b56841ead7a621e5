use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core, vesion = 2)]
struct OnTheStruct {
    topic: String,
}

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct OnFields {
    #[state(apend)]
    notes: Vec<String>,
    #[state(appends)]
    more: Vec<String>,
}

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core, append)]
struct OnTheWrongPlace {
    notes: Vec<String>,
}

fn main() {}
