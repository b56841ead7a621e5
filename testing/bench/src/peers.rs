//! The peers, installed beside ours in the user's cache: a virtual environment, a folder of node modules, two projects
//! of cargo. What is there already is left alone; the versions are those of the lock files under `bench/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use harness::workspace::{cache, cargo, output_of, root};

/// Where they are.
#[derive(Debug)]
pub(super) struct Peers {
    folder: PathBuf,
}

impl Peers {
    /// Installs what is missing.
    pub(super) fn install() -> anyhow::Result<Self> {
        let peers = Self {
            folder: cache()?.join("peers"),
        };
        std::fs::create_dir_all(&peers.folder)?;
        peers.install_python().context("LangGraph for Python")?;
        peers
            .install_javascript()
            .context("LangGraph for JavaScript")?;
        for name in ["adk-graph", "graph-flow"] {
            peers.build_rust(name).with_context(|| name.to_owned())?;
        }
        Ok(peers)
    }

    pub(super) fn python(&self) -> Command {
        let mut command = Command::new(self.environment().join("bin/python"));
        // Nothing is to be written beside the sources.
        command
            .arg("-B")
            .arg(sources("langgraph-python").join("side.py"));
        command
    }

    pub(super) fn javascript(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(self.modules().join("side.mjs"));
        // It warns of listeners whenever a run has more than ten tasks.
        command.env("NODE_NO_WARNINGS", "1");
        command
    }

    pub(super) fn rust(&self, name: &str) -> Command {
        Command::new(self.target().join("release").join(format!("peer-{name}")))
    }

    fn environment(&self) -> PathBuf {
        self.folder.join("python")
    }

    fn modules(&self) -> PathBuf {
        self.folder.join("js")
    }

    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    fn install_python(&self) -> anyhow::Result<()> {
        let wanted = sources("langgraph-python").join("requirements.txt");
        install_environment("python3", &self.environment(), &wanted)
    }

    /// Modules are found from where a program lies, so the program is laid beside them.
    fn install_javascript(&self) -> anyhow::Result<()> {
        let (from, to) = (sources("langgraph-js"), self.modules());
        std::fs::create_dir_all(&to)?;
        for entry in std::fs::read_dir(&from)? {
            let path = entry?.path();
            if path.is_file() {
                std::fs::copy(
                    &path,
                    to.join(path.file_name().context("a file has a name")?),
                )?;
            }
        }
        once(&to, &from.join("package-lock.json"), || {
            output_of(Command::new("npm").arg("--version"))
                .context("install Node.js 20 or newer with npm (Debian: nodejs, npm)")?;
            let mut install = Command::new("npm");
            install.args(["ci", "--no-fund", "--no-audit"]);
            output_of(install.current_dir(&to))
        })
    }

    fn build_rust(&self, name: &str) -> anyhow::Result<()> {
        eprintln!("peers: building {name}");
        let mut build = cargo();
        build.args(["build", "--release", "--quiet", "--locked"]);
        build
            .arg("--manifest-path")
            .arg(sources(name).join("Cargo.toml"));
        output_of(build.arg("--target-dir").arg(self.target())).map(drop)
    }
}

/// Makes a virtual environment of a Python, with the packages that a file lists.
pub(super) fn install_environment(
    python: &str,
    environment: &Path,
    wanted: &Path,
) -> anyhow::Result<()> {
    once(environment, wanted, || {
        let mut make = Command::new(python);
        output_of(make.args(["-m", "venv"]).arg(environment)).context(
            "install Python 3.10 or newer with its module `venv` (Debian: python3-venv)",
        )?;
        let pip = ["-m", "pip", "install", "--quiet", "--requirement"];
        let mut install = Command::new(environment.join("bin/python"));
        output_of(install.args(pip).arg(wanted))
    })
}

/// Installs into a folder unless that was done with the very same lock file.
fn once(
    folder: &Path,
    lock: &Path,
    install: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let (stamp, wanted) = (folder.join("installed"), std::fs::read(lock)?);
    if std::fs::read(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    eprintln!(
        "peers: installing into {}, which takes minutes",
        folder.display()
    );
    install()?;
    Ok(std::fs::write(stamp, wanted)?)
}

/// The folder under `bench/` with what a peer needs.
pub(super) fn sources(name: &str) -> PathBuf {
    root().join("bench").join(name)
}
