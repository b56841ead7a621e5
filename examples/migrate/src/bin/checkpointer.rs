//! A checkpointer of one's own: a file per thread.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;

use superstep::checkpoint::{ArchiveCheckpointer, ArchiveStore, ArchiveStoreResult};
use superstep::prelude::*;
use superstep::{Seq, ThreadId};
use tokio::task::block_in_place;

pub struct Files {
    folder: PathBuf,
}

impl Files {
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    // No name has an `@`. The file system must tell upper from lower case.
    fn path(&self, thread: &ThreadId) -> PathBuf {
        let tenant = self.folder.join(format!("@{}", thread.tenant()));
        tenant.join(thread.name())
    }

    fn stored(&self, thread: &ThreadId) -> ArchiveStoreResult<Option<Vec<u8>>> {
        match fs::read(self.path(thread)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            stored => Ok(Some(stored?)),
        }
    }
}

impl ArchiveStore for Files {
    async fn read(&self, thread: &ThreadId) -> ArchiveStoreResult<Option<Vec<u8>>> {
        block_in_place(|| self.stored(thread))
    }

    async fn replace(
        &self,
        thread: &ThreadId,
        expected: Option<&[u8]>,
        archive: &[u8],
    ) -> ArchiveStoreResult<bool> {
        block_in_place(|| {
            // Other processes wait here, until the lock is dropped.
            let lock = File::create(self.folder.join("lock"))?;
            lock.lock()?;
            if self.stored(thread)?.as_deref() != expected {
                return Ok(false);
            }
            let (new, path) = (self.folder.join("new"), self.path(thread));
            let tenant = path.parent().ok_or("no folder")?;
            fs::create_dir_all(tenant)?;
            let mut file = File::create(&new)?;
            file.write_all(archive)?;
            file.sync_all()?;
            fs::rename(new, &path)?;
            File::open(tenant)?.sync_all()?;
            File::open(&self.folder)?.sync_all()?;
            Ok(true)
        })
    }

    async fn read_all(&self) -> ArchiveStoreResult<Vec<Vec<u8>>> {
        block_in_place(|| {
            let mut archives = Vec::new();
            for tenant in fs::read_dir(&self.folder)? {
                let tenant = tenant?.path();
                if tenant.is_dir() {
                    for file in fs::read_dir(tenant)? {
                        archives.push(fs::read(file?.path())?);
                    }
                }
            }
            Ok(archives)
        })
    }
}

#[derive(Clone, Debug, Default, State)]
struct Refund {
    amount: u32,
    receipt: String,
}

async fn pay(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
    let question = Interrupt::new("approve", format!("Refund {}?", refund.amount));
    let is_approved: bool = cx.interrupt(question).await?;
    let receipt = match is_approved {
        true => format!("paid {}", refund.amount),
        false => "refused".to_owned(),
    };
    Ok(RefundUpdate::default().receipt(receipt))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("refund").node("pay", pay);
    let graph = graph.edge(START, "pay").edge("pay", END).build()?;
    let files = Files::open("checkpoints.db")?;
    let runtime = Runtime::new(ArchiveCheckpointer::new(files));
    match std::env::args().nth(1) {
        None => {
            let id = format!("refund-{}", std::process::id());
            let input = RefundUpdate::default().amount(40u32);
            let paused = runtime.thread(&graph, &id)?.start(input).await?;
            println!("first process: {}", paused.interrupts()[0].request);
            let program = std::env::current_exe()?;
            Command::new(program).arg(id).status()?;
        }
        Some(id) => {
            let thread = runtime.thread(&graph, id)?;
            let result = thread.resume_with(true).await?;
            println!("second process: {:?}", result.state);
            let checkpoints = thread.checkpoints(Seq(0), 100).await?;
            println!("checkpoints: {}", checkpoints.len());
        }
    }
    Ok(())
}
