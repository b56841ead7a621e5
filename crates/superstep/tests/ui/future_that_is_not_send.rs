use std::rc::Rc;

use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Review {
    verdict: String,
}

async fn judge(_: View<Review>, cx: NodeCx) -> Result<ReviewUpdate, NodeError> {
    let shared = Rc::new(1);
    let n: i32 = cx.step("judge", || async { Ok(1) }).await?;
    Ok(ReviewUpdate::default().verdict(format!("{}", n + *shared)))
}

fn main() {
    let _ = Graph::<Review>::builder("review").node("judge", judge);
}
