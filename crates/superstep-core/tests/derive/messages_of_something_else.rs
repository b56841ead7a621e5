use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(messages)]
    messages: Vec<Remark>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Remark;

fn main() {}
