use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

struct Job {
    part: u32,
}

const GRADE: SendTo<Job> = SendTo::new("grade");

fn main() {
    let _ = Command::<Review>::update(ReviewUpdate::default()).send(&GRADE, Job { part: 1 });
}
