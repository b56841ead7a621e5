//! Official clients of servers like ours, which programs on pages of the book import. Nothing of them listens; they are only
//! installed, and tests of pages run those programs with them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use super::npm::{install_npm, is_installed};
use super::python::make_python;
use super::{Member, Places, Service, Status};
use harness::workspace::output_of;

#[derive(Debug)]
pub(super) struct Clients {
    folder: PathBuf,
}

impl Clients {
    pub(super) fn new(places: &Places) -> Self {
        Self {
            folder: places.addresses.join("programs").join(super::CLIENTS),
        }
    }

    /// Where the packages are, for `PYTHONPATH`.
    fn python(&self) -> PathBuf {
        self.folder.join("python/packages")
    }

    fn node(&self) -> PathBuf {
        self.folder.join("node")
    }

    /// Written last, so that what is half installed is made again.
    fn mark(&self) -> PathBuf {
        self.folder
            .join("python/installed")
            .join(PYTHON_PACKAGES.join(","))
    }

    fn install_python(&self) -> anyhow::Result<()> {
        let name = super::CLIENTS;
        eprintln!(
            "{name}: installing {} with pip (about 20 s)",
            PYTHON_PACKAGES[0]
        );
        let python = make_python(name, PYTHON, &self.folder.join("python"))?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "-q", "install", "--target"]);
        output_of(pip.arg(self.python()).args(PYTHON_PACKAGES))?;
        fs::create_dir_all(self.folder.join("python/installed"))?;
        File::create(self.mark())?;
        Ok(())
    }
}

impl Service for Clients {
    fn name(&self) -> &'static str {
        super::CLIENTS
    }

    fn up(&self) -> anyhow::Result<()> {
        if !self.mark().is_file() {
            self.install_python()?;
        }
        if !is_installed(&self.node(), &NODE_PACKAGES) {
            eprintln!("{}: installing clients with npm (25 MB)", self.name());
            fs::create_dir_all(&self.folder)?;
            install_npm(self.name(), &self.node(), &NODE_PACKAGES)?;
        }
        Ok(())
    }

    /// Nothing runs, and what is installed stays.
    fn down(&self) -> anyhow::Result<bool> {
        Ok(false)
    }

    fn status(&self) -> anyhow::Result<Status> {
        let is_there = self.mark().is_file() && is_installed(&self.node(), &NODE_PACKAGES);
        let folders = [
            ("python", self.python()),
            ("node_modules", self.node().join("node_modules")),
        ];
        let named = |(name, folder): (&'static str, PathBuf)| (name, folder.display().to_string());
        Ok(Status {
            healthy: is_there,
            remark: None,
            members: vec![Member {
                name: self.name().to_owned(),
                runs: is_there,
                urls: match is_there {
                    true => folders.map(named).into(),
                    false => Vec::new(),
                },
            }],
        })
    }
}

/// The system's own, which is also the `python3` of the pages' sessions: some packages are compiled for one version.
const PYTHON: &str = "/usr/bin/python3";

/// The first is what pages import; it does not exclude newer versions of the others, which it was not made for.
const PYTHON_PACKAGES: [&str; 5] = [
    "langgraph-sdk==0.4.14",
    "langchain-core==1.7.2",
    "langchain-protocol==0.0.20",
    "httpx==0.28.1",
    "websockets==16.1.1",
];

const NODE_PACKAGES: [(&str, &str); 2] = [
    ("package.json", include_str!("clients/package.json")),
    (
        "package-lock.json",
        include_str!("clients/package-lock.json"),
    ),
];

#[test]
fn every_package_of_npm_is_pinned_and_comes_from_whatever_registry_is_set() {
    let [_, (_, lock)] = NODE_PACKAGES;
    let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    assert!(packages.len() > 1);
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(package["integrity"].is_string(), "{name}");
        assert!(package.get("resolved").is_none(), "{name}");
    }
}
