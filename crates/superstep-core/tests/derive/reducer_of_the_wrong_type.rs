use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Review {
    #[state(reduce = add)]
    score: i64,
}

fn add(total: &mut i64, write: i64) {
    *total += write;
}

fn main() {}
