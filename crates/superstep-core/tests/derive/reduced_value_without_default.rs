use superstep_core::State;

#[derive(Clone, Debug, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(reduce = later)]
    stage: Stage,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Stage {
    Draft,
}

impl Default for Review {
    fn default() -> Self {
        Self {
            stage: Stage::Draft,
        }
    }
}

fn later(_: Stage, new: Stage) -> Stage {
    new
}

fn main() {}
