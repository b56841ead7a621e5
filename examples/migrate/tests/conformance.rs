//! The checkpointer of the program `checkpointer` passes the suite that every checkpointer must pass.

use superstep::checkpoint::ArchiveCheckpointer;
use superstep_conformance::checkpointer;

#[path = "../src/bin/checkpointer.rs"]
#[expect(dead_code, reason = "the rest of the program is run by another test")]
mod program;

// Its files are read and written where other tasks may wait, which needs more than one thread.
#[tokio::test(flavor = "multi_thread")]
async fn files_keep_every_clause() {
    let folders = tempfile::tempdir().unwrap();
    let fresh = async || {
        let folder = tempfile::tempdir_in(&folders).unwrap().keep();
        ArchiveCheckpointer::new(program::Files::open(folder).unwrap())
    };
    checkpointer(fresh).await.assert();
}
