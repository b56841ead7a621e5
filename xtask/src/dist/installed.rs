//! Installs what was packed as its users do, each in a clean root, and runs it there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};
use serde_json::{Value as Json, json};

use super::clean_root::{CleanRoot, dpkg};
use super::release::Release;
use super::unpack::unpack_image;
use super::{SUMS, hex_sums};
use crate::deploy;
use harness::workspace::{output_of, root};
use services::require_program;

/// Checks the packages in this folder, and returns what was found.
pub(super) fn check(release: &Release, folder: &Path) -> anyhow::Result<Json> {
    let scratch = tempfile::tempdir()?;
    let archive = check_archive(release, folder, &scratch.path().join("archive"));
    let archive = archive.context("the archive")?;
    eprintln!("the archive installs and runs; a changed one is refused");
    let package = check_package(release, folder, &scratch.path().join("package"));
    let package = package.context("the package for Debian")?;
    eprintln!("the package for Debian installs, runs, and is removed");
    let image = check_image(release, folder, &scratch.path().join("image"));
    let image = image.context("the image")?;
    eprintln!("the image starts and runs");
    check_bill(&folder.join(format!("{}.cdx.json", release.name())))?;
    eprintln!("the bill of materials is valid CycloneDX");
    Ok(json!({
        "demo_scenarios_passed": { "archive": archive, "package": package, "image": image },
        "changed_archives_refused": TAMPERED.len(),
    }))
}

fn check_archive(release: &Release, folder: &Path, scratch: &Path) -> anyhow::Result<usize> {
    for (what, tamper) in TAMPERED {
        let copy = scratch.join("changed");
        copy_files(folder, &copy)?;
        tamper(&copy, release)?;
        let prefix = scratch.join("refused");
        let output = install(&copy, &prefix, &[])?;
        ensure!(
            !output.status.success(),
            "an archive is installed although {what}"
        );
        ensure!(!prefix.exists(), "something is installed although {what}");
        fs::remove_dir_all(&copy)?;
    }
    let archive = format!("{}.tar.gz", release.name());
    let other = "0".repeat(64);
    let output = install(folder, &scratch.join("refused"), &["--sha256", &other])?;
    ensure!(
        !output.status.success(),
        "an archive with another digest than `--sha256` is installed"
    );
    let sums = fs::read_to_string(folder.join(SUMS))?;
    let digest = hex_sums(&sums).find(|(_, name)| *name == archive);
    let (digest, _) = digest.with_context(|| format!("{SUMS} has no line for {archive}"))?;
    let root = scratch.join("root");
    let output = install(folder, &root.join("usr"), &["--sha256", digest])?;
    ensure!(
        output.status.success(),
        "the install script failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    for file in [
        "share/man/man1/archie.1",
        "share/bash-completion/completions/archie",
    ] {
        ensure!(
            root.join("usr").join(file).is_file(),
            "{file} is not installed"
        );
    }
    let root = CleanRoot::of_machine(&root, "/usr/bin/archie");
    root.check_version(&release.version)?;
    root.check_names()?;
    root.check_demo()
}

/// A way to change a folder with packages.
type Tamper = fn(&Path, &Release) -> anyhow::Result<()>;

/// What the install script has to notice.
const TAMPERED: [(&str, Tamper); 3] = [
    ("one of its bytes is another", |folder, release| {
        let path = archive(folder, release);
        let mut bytes = fs::read(&path)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        Ok(fs::write(path, bytes)?)
    }),
    ("it is cut short", |folder, release| {
        let path = archive(folder, release);
        let bytes = fs::read(&path)?;
        Ok(fs::write(path, &bytes[..bytes.len() - 1])?)
    }),
    ("its checksum is missing", |folder, release| {
        let path = folder.join(SUMS);
        let name = format!("{}.tar.gz", release.name());
        let sums = fs::read_to_string(&path)?;
        let lines = sums.lines().filter(|line| !line.ends_with(&name));
        let sums: String = lines.map(|line| format!("{line}\n")).collect();
        Ok(fs::write(path, sums)?)
    }),
];

fn archive(folder: &Path, release: &Release) -> PathBuf {
    folder.join(format!("{}.tar.gz", release.name()))
}

fn install(folder: &Path, prefix: &Path, options: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new("sh");
    command.arg(root().join(SCRIPT)).arg("--from").arg(folder);
    command.arg("--prefix").arg(prefix).args(options);
    Ok(command.output()?)
}

/// The install script, from the root of the workspace.
pub(super) const SCRIPT: &str = "deploy/install.sh";

fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn check_package(release: &Release, folder: &Path, scratch: &Path) -> anyhow::Result<usize> {
    let name = format!("archie_{}_{}.deb", release.version, release.platform.debian);
    let package = folder.join(name);
    let dpkg_deb = require_program("dpkg-deb", "dpkg")?;
    for question in ["--info", "--contents"] {
        output_of(Command::new(&dpkg_deb).arg(question).arg(&package))?;
    }
    let package = package.display().to_string();
    dpkg(scratch, &["--install", &package])?;
    let root = CleanRoot::of_machine(scratch, "/usr/bin/archie");
    root.check_version(&release.version)?;
    let passed = root.check_demo()?;
    dpkg(scratch, &["--purge", "archie"])?;
    if scratch.join("usr").exists() {
        bail!("files are left after the package was removed");
    }
    Ok(passed)
}

fn check_image(release: &Release, folder: &Path, scratch: &Path) -> anyhow::Result<usize> {
    let image = unpack_image(&folder.join(format!("{}.oci.tar", release.name())), scratch)?;
    let root = CleanRoot::of_image(&image.root, &image.config)?;
    root.check_version(&release.version)?;
    root.check_demo()
}

/// Compares the bill of materials with the schema of its format.
fn check_bill(path: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(deploy::python()?);
    output_of(command.args(["-c", VALIDATE]).arg(path))?;
    Ok(())
}

const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
if error:
    sys.exit(f'not valid CycloneDX: {error}')
";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::dist::{archive as packed, contents, release, sums};

    /// A release of this machine's kind, whose program is a script.
    fn packages(folder: &Path) -> Release {
        let mut release = release::example();
        release.platform = Release::of_this_commit(root()).unwrap().platform;
        let mut contents = contents::example();
        contents.program = b"#!/bin/sh\necho archie 1.2.3\n".to_vec();
        let name = format!("{}.tar.gz", release.name());
        let bytes = packed(&release, &contents).unwrap();
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(&name), &bytes).unwrap();
        fs::write(folder.join(SUMS), sums(&[(name, bytes)])).unwrap();
        release
    }

    #[test]
    fn the_install_script_installs_without_a_network_what_has_the_right_digest() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("packages");
        packages(&folder);
        let prefix = scratch.path().join("a folder");
        let output = install(&folder, &prefix, &[]).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let program = prefix.join("bin/archie");
        let mode = fs::metadata(&program).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        let printed = output_of(&mut Command::new(program)).unwrap();
        assert_eq!(printed, "archie 1.2.3\n");
        assert!(prefix.join("share/man/man1/archie-serve.1").is_file());
        assert!(
            prefix
                .join("share/bash-completion/completions/archie")
                .is_file()
        );
        // A second time replaces what is there.
        assert!(install(&folder, &prefix, &[]).unwrap().status.success());
    }

    #[test]
    fn the_install_script_refuses_what_was_changed_and_leaves_nothing_behind() {
        let scratch = tempfile::tempdir().unwrap();
        for (what, tamper) in TAMPERED {
            let folder = scratch.path().join("packages");
            let release = packages(&folder);
            tamper(&folder, &release).unwrap();
            let prefix = scratch.path().join("prefix");
            let output = install(&folder, &prefix, &[]).unwrap();
            assert!(
                !output.status.success() && !prefix.exists(),
                "although {what}"
            );
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn the_install_script_refuses_another_digest_than_the_one_that_was_typed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("packages");
        packages(&folder);
        let prefix = scratch.path().join("prefix");
        let digest = "0".repeat(64);
        let output = install(&folder, &prefix, &["--sha256", &digest]).unwrap();
        assert!(!output.status.success() && !prefix.exists());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("SHA-256"), "{error}");
    }
}
