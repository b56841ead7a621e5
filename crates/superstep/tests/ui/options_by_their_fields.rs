use superstep::prelude::*;

fn main() {
    let _ = superstep::RunOptions {
        step_limit: 10,
        ..Default::default()
    };
}
