use superstep::prelude::*;

fn main() {
    let _ = Runtime::new("sqlite:threads.db");
}
