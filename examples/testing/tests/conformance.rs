//! A checkpointer of your own must keep the same rules as ours.

use superstep::Memory;
use superstep_conformance::checkpointer;

#[tokio::test]
async fn it_keeps_every_rule() {
    // An empty one of yours, for each of the rules.
    checkpointer(async || Memory::default()).await.assert();
}
