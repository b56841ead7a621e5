//! `cargo xtask dist`: what a platform team installs. One static program, and around it an archive, a package for Debian, an image,
//! a bill of materials, licences and checksums.
//!
//! Small writers make each format, so a release needs no Docker and no packaging tools. Nothing in a package depends on the
//! machine or the time: `--check` builds a second time in other folders and compares, and then installs and runs everything in
//! clean roots.

mod build;
mod clean_root;
mod contents;
mod deb;
mod installed;
mod licences;
mod linked;
mod manual;
mod oci;
mod release;
mod sbom;
mod tree;
mod unpack;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use build::Place;
use contents::Contents;
use harness::folder::{remove_folder, replace_folder};
use harness::workspace::{cache, cargo, commit, files, is_dirty, output_of, root};
use release::Release;
use tree::{Tree, gzip};

/// What was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DistArgs {
    /// Whether a second build is compared, and everything is installed and run.
    pub(crate) check: bool,
    /// A program that is packed instead of building one.
    pub(crate) program: Option<String>,
    /// Whether sizes and digests go into [`RESULTS`].
    pub(crate) record: bool,
    pub(crate) json: bool,
}

pub(crate) fn run(args: &DistArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let release = Release::of_this_commit(root())?;
    let here = place()?;
    let program = match &args.program {
        Some(program) => PathBuf::from(program),
        None => here.build(&release)?,
    };
    let out = here.target.join("release-files");
    let packages = pack(&release, root(), &program)?;
    write(&packages, &out)?;
    for (name, bytes) in &packages {
        eprintln!("{:>11}  {name}", bytes.len());
    }
    let bytes = fs::read(&program)?;
    eprintln!("{:>11}  the program", bytes.len());
    build::check_program(&bytes, &[here.workspace, here.target, here.cargo_home])?;

    let mut report = json!({
        "test": "dist",
        "version": release.version,
        "date": release.timestamp(),
        "platform": release.platform.rust,
        "program": { "bytes": bytes.len(), "sha256": sha256(&bytes) },
        "files": packages.iter().map(|(name, bytes)| {
            json!({ "name": name, "bytes": bytes.len(), "sha256": sha256(bytes) })
        }).collect::<Vec<_>>(),
    });
    let mut different = Vec::new();
    if args.check {
        report["installed"] = installed::check(&release, &out)?;
        if args.program.is_none() {
            different = different_names(&packages, &build_again(&release)?);
            report["builds_compared"] = json!(2);
        }
    }
    report["violations"] = json!(different.len());
    report["seconds"] = json!(start.elapsed().as_secs());
    if args.record && different.is_empty() {
        record(&report)?;
    }
    if args.json {
        print(&report);
    }
    ensure!(
        different.is_empty(),
        "a second build has other digests: {}",
        different.join(", ")
    );
    eprintln!("the release is in {}", out.display());
    Ok(())
}

/// Where this workspace is built.
fn place() -> anyhow::Result<Place> {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
    let json: Json = serde_json::from_str(&output_of(cargo().args(args))?)?;
    let target = json["target_directory"].as_str();
    Ok(Place {
        workspace: root().to_owned(),
        target: target.context("cargo names no target folder")?.into(),
        cargo_home: cargo_home()?,
    })
}

fn cargo_home() -> anyhow::Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty()) {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    Ok(Path::new(&home).join(".cargo"))
}

/// Builds and packs a second time, with every folder in another place, and returns the packages.
fn build_again(release: &Release) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let folder = cache()?.join("dist-again");
    remove_folder(&folder)?;
    let there = Place {
        workspace: folder.join("a-copy-of-the-workspace"),
        target: folder.join("target"),
        cargo_home: folder.join("cargo"),
    };
    for path in files()?.iter().filter(|path| root().join(path).is_file()) {
        let copy = there.workspace.join(path);
        fs::create_dir_all(copy.parent().unwrap_or(&folder))?;
        fs::copy(root().join(path), copy)?;
    }
    // Another name for the same sources: they are large, and the lock file has their digests.
    fs::create_dir_all(&there.cargo_home)?;
    for entry in fs::read_dir(cargo_home()?)? {
        let entry = entry?;
        let copy = there.cargo_home.join(entry.file_name());
        std::os::unix::fs::symlink(entry.path(), copy)?;
    }
    eprintln!("building a second time, in other folders");
    let program = there.build(release)?;
    let packages = pack(release, &there.workspace, &program)?;
    remove_folder(&folder)?;
    Ok(packages)
}

/// Returns the names and the contents of the files of a release.
fn pack(
    release: &Release,
    workspace: &Path,
    program: &Path,
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let linked = linked::read(workspace, release.platform.rust)?;
    let contents = Contents::gather(release, workspace, program, &linked)?;
    let bill = sbom::document(release, &contents.program, &linked);
    let deb = format!("archie_{}_{}.deb", release.version, release.platform.debian);
    let mut packages = vec![
        (
            format!("{}.tar.gz", release.name()),
            archive(release, &contents)?,
        ),
        (deb, deb::package(release, &contents)?),
        (
            format!("{}.oci.tar", release.name()),
            oci::image(release, &contents)?,
        ),
        (
            format!("{}.cdx.json", release.name()),
            (serde_json::to_string_pretty(&bill)? + "\n").into_bytes(),
        ),
        (
            "install.sh".to_owned(),
            fs::read(workspace.join(installed::SCRIPT))?,
        ),
    ];
    packages.sort();
    packages.push((SUMS.to_owned(), sums(&packages).into_bytes()));
    Ok(packages)
}

/// An archive with everything in one folder.
fn archive(release: &Release, contents: &Contents) -> anyhow::Result<Vec<u8>> {
    let mut tree = Tree::default();
    tree.file("archie", 0o755, contents.program.clone());
    tree.file("README.md", 0o644, contents.readme.as_str());
    tree.file("CHANGELOG.md", 0o644, contents.changelog.as_str());
    for (folder, files) in [
        ("", &contents.licences),
        ("licenses/", &contents.third_party),
        ("completions/", &contents.completions),
        ("man/man1/", &contents.manuals),
    ] {
        for (name, text) in files {
            tree.file(&format!("{folder}{name}"), 0o644, text.as_str());
        }
    }
    gzip(&tree.to_tar(&format!("{}/", release.name()), release.date)?)
}

/// What `sha256sum --check` reads.
fn sums(packages: &[(String, Vec<u8>)]) -> String {
    let line = |(name, bytes): &(String, Vec<u8>)| format!("{}  {name}\n", sha256(bytes));
    packages.iter().map(line).collect()
}

/// The digests and names of such a file.
fn hex_sums(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once("  "))
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces the folder, so that nothing of another release is in it.
fn write(packages: &[(String, Vec<u8>)], out: &Path) -> anyhow::Result<()> {
    replace_folder(out, |unfinished| {
        for (name, bytes) in packages {
            fs::write(unfinished.join(name), bytes)?;
        }
        Ok(())
    })
}

/// The files that are not the same in two builds. Checksums differ whenever another file does.
fn different_names(one: &[(String, Vec<u8>)], other: &[(String, Vec<u8>)]) -> Vec<String> {
    let missing = other
        .iter()
        .filter(|(name, _)| one.iter().all(|(known, _)| known != name));
    let changed = one.iter().filter(|file| !other.contains(file));
    changed
        .chain(missing)
        .map(|(name, _)| name.clone())
        .collect()
}

fn record(report: &Json) -> anyhow::Result<()> {
    let mut report = report.clone();
    report["commit"] = json!(commit());
    report["dirty"] = json!(is_dirty());
    let text = serde_json::to_string_pretty(&report)? + "\n";
    fs::write(root().join(RESULTS), text).with_context(|| format!("{RESULTS} cannot be written"))
}

#[expect(clippy::print_stdout, reason = "what --json asks for is data")]
fn print(report: &Json) {
    println!("{report}");
}

/// Where the figures are recorded.
const RESULTS: &str = "results/dist.json";
const SUMS: &str = "SHA256SUMS";

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn files(list: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        let file = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().to_vec());
        list.iter().map(file).collect()
    }

    #[test]
    fn sha256sum_accepts_the_checksums_and_notices_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let mut packages = files(&[("a", "one"), ("b", "two")]);
        packages.push((SUMS.to_owned(), sums(&packages).into_bytes()));
        write(&packages, &folder.path().join("out")).unwrap();
        let out = folder.path().join("out");
        let check = || {
            let mut command = Command::new("sha256sum");
            command
                .args(["--check", "--strict", SUMS])
                .current_dir(&out);
            output_of(&mut command)
        };
        assert_eq!(check().unwrap(), "a: OK\nb: OK\n");
        fs::write(out.join("b"), "tvo").unwrap();
        assert!(check().is_err());
    }

    #[test]
    fn a_file_that_differs_or_is_missing_in_one_build_is_named() {
        let one = files(&[("a", "1"), ("b", "1"), ("c", "1")]);
        assert_eq!(different_names(&one, &one), Vec::<String>::new());
        let other = files(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(different_names(&one, &other), ["b", "c", "d"]);
    }

    #[test]
    fn the_archive_has_the_program_the_texts_and_the_pages_in_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar.gz");
        let archive = archive(&release::example(), &contents::example()).unwrap();
        fs::write(&path, archive).unwrap();
        unpack::extract(&path, folder.path()).unwrap();
        let root = folder.path().join("archie-1.2.3-linux-x86_64");
        for file in [
            "archie",
            "README.md",
            "CHANGELOG.md",
            "LICENSE-MIT",
            "licenses/crates.txt",
            "completions/archie.bash",
            "man/man1/archie-serve.1",
        ] {
            assert!(root.join(file).is_file(), "{file}");
        }
    }
}
