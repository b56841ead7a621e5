use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

const GRADE: SendTo<u32> = SendTo::new("grade");

async fn grade(_: String, _: NodeCx) -> Result<ReviewUpdate, NodeError> {
    Ok(ReviewUpdate::default())
}

fn main() {
    let _ = Graph::<Review>::builder("review").map_node(&GRADE, grade);
}
