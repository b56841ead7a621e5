//! Builds the program: static, so that it runs on any Linux, and equal wherever it is built.
//!
//! The C library is glibc, because rustup has no standard library for musl where it cannot download one. Two parts of glibc would
//! still load shared libraries of the host: name services, which `name_services.c` turns off, and converters of character sets,
//! which Rust does not use. Names of folders are replaced in what the compilers write.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value as Json;

use super::linked::PROGRAM;
use super::release::Release;
use harness::workspace::{cargo, in_words, output_of};

/// Where the program is built, which must not matter.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) workspace: PathBuf,
    pub(super) target: PathBuf,
    pub(super) cargo_home: PathBuf,
}

impl Place {
    /// Builds the program and returns its path.
    pub(super) fn build(&self, release: &Release) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(&self.target)?;
        // Cargo does not link again if only this changes; the second build of `--check` would differ then.
        let object = self.target.join("name_services.o");
        let source = self.workspace.join("xtask/src/dist/name_services.c");
        let mut compile = Command::new("cc");
        compile
            .args(["-O2", "-c"])
            .arg(source)
            .arg("-o")
            .arg(&object);
        output_of(&mut compile)?;

        let mut names = self.names()?;
        let flags = c_flags(&names)?;
        names.insert(names.len() - 2, standard_library()?);
        let mut command = cargo();
        command
            .current_dir(&self.workspace)
            .args(["build", "--locked", "--package", PROGRAM, "--bin", "archie"])
            .args(["--profile", "dist", "--target", release.platform.rust])
            .env("CARGO_HOME", &self.cargo_home)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "0")
            .env("SOURCE_DATE_EPOCH", release.date.to_string())
            .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&object, &names))
            .env_remove("RUSTFLAGS");
        for variable in ["CFLAGS", "CXXFLAGS"] {
            command.env(variable, &flags);
        }
        let status = command.status();
        let status =
            status.with_context(|| format!("`{}` cannot be started", in_words(&command)))?;
        ensure!(status.success(), "the program cannot be built; see above");
        let folder = self.target.join(release.platform.rust);
        Ok(folder.join("dist/archie"))
    }

    /// Returns the folders of this machine that end up in a program, and what is written instead. A later one overrides an
    /// earlier one, so a folder comes after the one that it is in.
    fn names(&self) -> anyhow::Result<Vec<(PathBuf, String)>> {
        let mut names = vec![(self.cargo_home.clone(), "/cargo".to_owned())];
        let sources = self.registry_sources()?;
        names.extend(
            sources
                .into_iter()
                .map(|folder| (folder, "/cargo/registry".to_owned())),
        );
        names.push((self.workspace.clone(), "/superstep".to_owned()));
        names.push((self.target.clone(), "/superstep/target".to_owned()));
        Ok(names)
    }

    /// The folders below which registries have the sources of crates; their names depend on the address of the registry.
    fn registry_sources(&self) -> anyhow::Result<BTreeSet<PathBuf>> {
        let mut command = cargo();
        command
            .current_dir(&self.workspace)
            .args(["metadata", "--locked", "--format-version", "1"])
            .env("CARGO_HOME", &self.cargo_home);
        let metadata: Json = serde_json::from_str(&output_of(&mut command)?)?;
        let packages = metadata["packages"].as_array();
        let packages = packages.context("cargo metadata has no packages")?;
        let foreign = packages
            .iter()
            .filter(|package| !package["source"].is_null());
        let manifests = foreign.filter_map(|package| package["manifest_path"].as_str());
        let folders = manifests.filter_map(|manifest| Path::new(manifest).ancestors().nth(2));
        Ok(folders.map(Path::to_owned).collect())
    }
}

/// Where the sources of the standard library are if they are installed, and what its makers wrote instead.
fn standard_library() -> anyhow::Result<(PathBuf, String)> {
    let rustc = |args: &[&str]| output_of(Command::new("rustc").args(args));
    let sysroot = rustc(&["--print", "sysroot"])?;
    let version = rustc(&["-vV"])?;
    let commit = version
        .lines()
        .find_map(|line| line.strip_prefix("commit-hash: "));
    let commit = commit.context("rustc names no commit")?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    Ok((folder, format!("/rustc/{commit}")))
}

/// Flags as cargo takes them, so that folders may have blanks in their names.
fn rust_flags(object: &Path, names: &[(PathBuf, String)]) -> String {
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("-Clink-arg={}", object.display()),
    ];
    let remap = |(folder, name): &(PathBuf, String)| {
        format!("--remap-path-prefix={}={name}", folder.display())
    };
    flags.extend(names.iter().map(remap));
    flags.join("\x1f")
}

fn c_flags(names: &[(PathBuf, String)]) -> anyhow::Result<String> {
    let mut flags = Vec::new();
    for (folder, name) in names {
        let folder = folder.display().to_string();
        ensure!(
            !folder.contains(char::is_whitespace),
            "`{folder}` has a blank in its name, which flags for a C compiler cannot have"
        );
        flags.push(format!("-ffile-prefix-map={folder}={name}"));
    }
    Ok(flags.join(" "))
}

/// Fails if the program is too large, needs the machine's loader, or has the name of a folder of this machine in it.
pub(super) fn check_program(program: &[u8], folders: &[PathBuf]) -> anyhow::Result<()> {
    ensure!(
        program.len() <= BYTES_MAX,
        "the program has {} bytes; at most {BYTES_MAX} are agreed",
        program.len()
    );
    ensure!(
        is_static(program)?,
        "the program needs a loader of shared libraries"
    );
    for folder in folders {
        let folder = folder.display().to_string();
        let is_found = program
            .windows(folder.len())
            .any(|part| part == folder.as_bytes());
        ensure!(
            !is_found,
            "the program has the name of a folder in it: {folder}"
        );
    }
    Ok(())
}

/// Whether an ELF file names no interpreter.
fn is_static(elf: &[u8]) -> anyhow::Result<bool> {
    const INTERPRETER: u64 = 3;
    let number = |at: usize, bytes: usize| {
        let field = elf
            .get(at..at + bytes)
            .context("the program is cut short")?;
        let little = field
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        anyhow::Ok(little)
    };
    // 64 bits, little-endian.
    ensure!(
        elf.starts_with(b"\x7fELF\x02\x01"),
        "the program is not an ELF file of 64 bits"
    );
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for at in 0..count {
        let header = usize::try_from(start + at * size)?;
        if number(header, 4)? == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// 40 MB.
const BYTES_MAX: usize = 40_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_each_folder_and_the_inner_one_last() {
        let names = [
            (PathBuf::from("/a b"), "/cargo".to_owned()),
            (PathBuf::from("/a b/c"), "/superstep".to_owned()),
        ];
        assert_eq!(
            rust_flags(Path::new("/o.o"), &names)
                .split('\x1f')
                .collect::<Vec<_>>(),
            [
                "-Ctarget-feature=+crt-static",
                "-Clink-arg=/o.o",
                "--remap-path-prefix=/a b=/cargo",
                "--remap-path-prefix=/a b/c=/superstep",
            ]
        );
        assert!(c_flags(&names).is_err());
    }

    #[test]
    fn a_program_with_a_loader_is_not_static_and_one_without_is() {
        let elf = |kind: u8| {
            let mut elf = vec![0; 120];
            elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
            (elf[32], elf[54], elf[56], elf[64]) = (64, 56, 1, kind);
            elf
        };
        assert!(is_static(&elf(1)).unwrap());
        assert!(!is_static(&elf(3)).unwrap());
        assert!(is_static(&elf(1)[..64]).is_err());
        assert!(is_static(b"#!/bin/sh").is_err());
        // The tests themselves are linked with the machine's C library.
        let test = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&test).unwrap());
    }

    #[test]
    fn a_program_that_is_too_large_or_names_a_folder_is_refused() {
        let mut program = vec![0; 120];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let folders = [PathBuf::from("/builder/w")];
        check_program(&program, &folders).unwrap();
        program.extend(b"/builder/w/src/lib.rs");
        assert!(check_program(&program, &folders).is_err());
        program.truncate(120);
        program.resize(BYTES_MAX + 1, 0);
        assert!(check_program(&program, &folders).is_err());
    }
}
