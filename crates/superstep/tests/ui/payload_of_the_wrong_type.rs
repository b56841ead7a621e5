use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

const GRADE: SendTo<u32> = SendTo::new("grade");

fn main() {
    let _ = Command::update(ReviewUpdate::default()).send(&GRADE, "seven");
}
