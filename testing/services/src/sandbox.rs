//! What the code of `archie sheet` runs in: bubblewrap, and a Python with pandas. Nothing of it listens; it is only installed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use super::packages::{find_program, install};
use super::python::make_python;
use super::{Member, Places, Service, Status};
use harness::workspace::output_of;

#[derive(Debug)]
pub(super) struct Sandbox {
    folder: PathBuf,
}

impl Sandbox {
    pub(super) fn new(places: &Places) -> Self {
        // Started by root the sandbox becomes nobody, to whom a home folder is closed; the folder for temporary files is not.
        let folder = format!("superstep-python-{}", places.account.caller());
        Self {
            folder: std::env::temp_dir().join(folder),
        }
    }

    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// Written last, so that what is half installed is made again.
    fn mark(&self) -> PathBuf {
        self.folder.join("installed").join(PACKAGES.join(","))
    }

    fn is_there(&self) -> bool {
        self.mark().is_file() && find_program("bwrap").is_some()
    }
}

impl Service for Sandbox {
    fn name(&self) -> &'static str {
        super::SANDBOX
    }

    fn up(&self) -> anyhow::Result<()> {
        let name = self.name();
        if find_program("bwrap").is_none() {
            eprintln!("{name}: installing bubblewrap (about 5 s)");
            install(&["bubblewrap"])?;
        }
        if self.mark().is_file() {
            return Ok(());
        }
        let python = make_python(name, PYTHON, &self.folder)?;
        eprintln!(
            "{name}: installing {} with pip (260 MB, about 30 s)",
            PACKAGES.join(", ")
        );
        output_of(
            Command::new(python)
                .args(["-m", "pip", "-q", "install"])
                .args(PACKAGES),
        )?;
        fs::create_dir_all(self.folder.join("installed"))?;
        File::create(self.mark())?;
        Ok(())
    }

    /// Nothing runs, and what is installed stays.
    fn down(&self) -> anyhow::Result<bool> {
        Ok(false)
    }

    fn status(&self) -> anyhow::Result<Status> {
        let is_there = self.is_there();
        let program = self.python().display().to_string();
        Ok(Status {
            healthy: is_there,
            remark: None,
            members: vec![Member {
                name: self.name().to_owned(),
                runs: is_there,
                urls: is_there.then_some((PROGRAM, program)).into_iter().collect(),
            }],
        })
    }
}

/// The system's own: another may be where the sandbox cannot read it.
const PYTHON: &str = "/usr/bin/python3";
const PROGRAM: &str = "program";
const PACKAGES: [&str; 3] = ["pandas==3.1.1", "openpyxl==3.1.5", "matplotlib==3.11.2"];
