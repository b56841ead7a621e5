//! What is packed, once for all packages: the program, what it prints about itself, and the texts that come with it.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::linked::Linked;
use super::release::Release;
use super::{licences, manual};
use crate::cli_reference;
use harness::workspace::output_of;

#[derive(Debug, Clone)]
pub(super) struct Contents {
    pub(super) program: Vec<u8>,
    pub(super) readme: String,
    pub(super) changelog: String,
    /// Ours: names of files and their texts.
    pub(super) licences: Vec<(String, String)>,
    /// Those of what is linked into the program.
    pub(super) third_party: Vec<(String, String)>,
    /// By the name that the shell expects.
    pub(super) completions: Vec<(String, String)>,
    pub(super) manuals: Vec<(String, String)>,
}

impl Contents {
    /// Reads the texts of a workspace and asks the program for its completions.
    pub(super) fn gather(
        release: &Release,
        workspace: &Path,
        program: &Path,
        linked: &[Linked],
    ) -> anyhow::Result<Self> {
        let read = |path: &str| {
            let path = workspace.join(path);
            std::fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", path.display()))
        };
        let ours = |name: &str| Ok((name.to_owned(), read(name)?));
        let completions = SHELLS.iter().map(|(shell, name)| {
            let mut command = Command::new(program);
            let script = output_of(command.args(["completions", shell]))?;
            anyhow::Ok(((*name).to_owned(), script))
        });
        Ok(Self {
            program: std::fs::read(program)
                .with_context(|| format!("{} cannot be read", program.display()))?,
            readme: read("apps/archie/README.md")?,
            changelog: read("CHANGELOG.md")?,
            licences: OUR_LICENCES
                .iter()
                .map(|name| ours(name))
                .collect::<anyhow::Result<_>>()?,
            third_party: licences::third_party(release, linked)?,
            completions: completions.collect::<anyhow::Result<_>>()?,
            manuals: manual::pages(release, &cli_reference::helps()?),
        })
    }

    /// The file `copyright` of a package of Debian.
    pub(super) fn copyright(&self) -> String {
        let mut text = COPYRIGHT.to_owned();
        for (name, licence) in &self.licences {
            text.push_str(&format!("\n---- {name} ----\n\n{licence}"));
        }
        text
    }
}

const OUR_LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

const COPYRIGHT: &str = "\
Archie is copyright of the Superstep contributors. You may use it under the MIT licence or the Apache licence, version 2.0, as you
choose. Both texts follow. The licences of what is linked into the program are in the folder `licenses` next to this file.
";

/// The shells that the program knows, and how the file for each is called.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "archie.bash"),
    ("elvish", "archie.elv"),
    ("fish", "archie.fish"),
    ("powershell", "archie.ps1"),
    ("zsh", "_archie"),
];

#[cfg(test)]
pub(super) fn example() -> Contents {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    Contents {
        program: b"program".to_vec(),
        readme: "# Archie\n".to_owned(),
        changelog: "# Changelog\n".to_owned(),
        licences: vec![file("LICENSE-MIT", "MIT\n")],
        third_party: vec![file("crates.txt", "serde\n")],
        completions: vec![
            file("_archie", "#compdef archie\n"),
            file("archie.bash", "complete\n"),
            file("archie.elv", "e\n"),
            file("archie.fish", "complete\n"),
        ],
        manuals: vec![file("archie-serve.1", ".TH ARCHIE 1\n")],
    }
}
