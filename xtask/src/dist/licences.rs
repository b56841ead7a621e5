//! The licences of what is linked into the program, from the files that come with it.
//!
//! A text that several packages share is printed once. A package without a licence file gets those of another one from the same
//! repository, or the text of a licence that it names; if there is neither, the release fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::linked::{Kind, Linked};
use super::release::Release;
use harness::workspace::output_of;

/// Returns the names and the texts of the files: one for all crates, and one for each part of the toolchain.
pub(super) fn third_party(
    release: &Release,
    linked: &[Linked],
) -> anyhow::Result<Vec<(String, String)>> {
    let sysroot = output_of(Command::new("rustc").args(["--print", "sysroot"]))?;
    let standard = Path::new(sysroot.trim()).join("share/doc/rust/licenses");
    let mut texts = vec![(
        "crates.txt".to_owned(),
        of_crates(release, linked, &standard)?,
    )];
    for one in linked {
        let Kind::Toolchain { texts: files } = &one.kind else {
            continue;
        };
        for file in files {
            let text = read(file)?;
            let ending = file.extension().and_then(|ending| ending.to_str());
            let name = match (ending, file.ends_with("copyright")) {
                (Some("html"), _) => format!("{}.html", one.name),
                (_, true) => format!("{}.txt", one.name),
                // The full text of a licence that another file names.
                _ => format!(
                    "{}.txt",
                    file.file_name().unwrap_or_default().to_string_lossy()
                ),
            };
            texts.push((name, text));
        }
    }
    texts.sort();
    Ok(texts)
}

fn of_crates(release: &Release, linked: &[Linked], standard: &Path) -> anyhow::Result<String> {
    let mut list = String::new();
    // Each text, and which packages come with it.
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in linked {
        let Kind::Crate(package) = &one.kind else {
            continue;
        };
        if package.is_ours {
            continue;
        }
        let name = format!("{} {}", one.name, one.version);
        let from = one.repository.as_deref().unwrap_or_default();
        list.push_str(format!("{name}  {}  {from}", one.licence).trim_end());
        list.push('\n');
        let mut files = licence_files(&package.folder)?;
        if files.is_empty() {
            files = files_of_siblings(one, linked)?;
        }
        if files.is_empty() {
            files.push(standard_text(&one.licence, standard).with_context(|| {
                format!("`{name}` has no file with its licence, {}", one.licence)
            })?);
        }
        for file in files {
            texts
                .entry(normal(&read(&file)?))
                .or_default()
                .insert(name.clone());
        }
    }
    ensure!(!texts.is_empty(), "nothing is linked");
    let mut document = format!(
        "Crates that are linked into archie {}, with their licences and where they come from\n\n{list}",
        release.version
    );
    for (text, packages) in texts {
        let packages: Vec<_> = packages.into_iter().collect();
        let packages = packages.join(", ");
        document.push_str(&format!("\n{RULE}\n{packages}\n{RULE}\n\n{text}"));
    }
    Ok(document)
}

/// Files with licences, notices and copyrights, anywhere in a package: C code inside of it has its own.
fn licence_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("{} cannot be read", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() && is_licence(&entry.file_name().to_string_lossy()) => {
                    found.push(entry.path());
                }
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The licence files of linked packages from the same repository, under the same licence.
fn files_of_siblings(one: &Linked, linked: &[Linked]) -> anyhow::Result<Vec<PathBuf>> {
    let is_sibling = |other: &&Linked| {
        one.repository.is_some()
            && other.repository == one.repository
            && other.licence == one.licence
    };
    let mut files = Vec::new();
    for other in linked.iter().filter(is_sibling) {
        if let Kind::Crate(package) = &other.kind {
            files.extend(licence_files(&package.folder)?);
        }
    }
    Ok(files)
}

fn is_licence(name: &str) -> bool {
    let name = name.to_lowercase();
    let starts = [
        "license",
        "licence",
        "copying",
        "copyright",
        "notice",
        "unlicense",
    ];
    let is_code = [
        ".rs", ".c", ".h", ".py", ".js", ".json", ".toml", ".html", ".tmpl", ".hbs",
    ];
    starts.iter().any(|start| name.starts_with(start))
        && !is_code.iter().any(|ending| name.ends_with(ending))
}

/// The file of the toolchain with the text of one of the licences among which an expression lets choose.
fn standard_text(expression: &str, folder: &Path) -> Option<PathBuf> {
    let choices = expression
        .split(" OR ")
        .map(|name| name.trim_matches(['(', ')', ' ']));
    let mut files = choices.map(|name| folder.join(format!("{name}.txt")));
    files.find(|file| file.is_file())
}

/// The text without what is no difference: line ends, and blanks at the ends of lines.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned() + "\n"
}

fn read(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    // Some are in Latin-1, with the name of an author in it.
    let latin = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect();
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| latin(error.into_bytes())))
}

const RULE: &str =
    "================================================================================";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::linked::Crate;
    use crate::dist::release;

    fn package(root: &Path, name: &str, files: &[(&str, &str)]) -> Linked {
        let folder = root.join(name);
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(&folder).unwrap();
        Linked {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT OR Apache-2.0".to_owned(),
            repository: None,
            kind: Kind::Crate(Crate {
                is_ours: false,
                folder,
                checksum: None,
                needs: BTreeSet::new(),
            }),
        }
    }

    #[test]
    fn a_text_of_two_packages_is_printed_once_and_that_of_c_code_inside_is_found() {
        let root = tempfile::tempdir().unwrap();
        let linked = [
            package(root.path(), "a", &[("LICENSE-MIT", "the text\r\n")]),
            package(
                root.path(),
                "b",
                &[
                    ("LICENSE", "the text  \n"),
                    ("vendor/COPYING", "of C\n"),
                    ("license.rs", "code"),
                ],
            ),
        ];
        let text = of_crates(&release::example(), &linked, root.path()).unwrap();
        let expected = format!(
            "Crates that are linked into archie 1.2.3, with their licences and where they come from\n\n\
             a 1.0.0  MIT OR Apache-2.0\nb 1.0.0  MIT OR Apache-2.0\n\n\
             {RULE}\nb 1.0.0\n{RULE}\n\nof C\n\n{RULE}\na 1.0.0, b 1.0.0\n{RULE}\n\nthe text\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_package_without_a_text_gets_that_of_another_one_from_its_repository() {
        let root = tempfile::tempdir().unwrap();
        let mut linked = [
            package(root.path(), "bare", &[]),
            package(root.path(), "sibling", &[("LICENSE", "theirs\n")]),
        ];
        let address = Some("https://example.org/both".to_owned());
        linked[0].repository.clone_from(&address);
        assert!(of_crates(&release::example(), &linked, root.path()).is_err());
        linked[1].repository = address;
        let text = of_crates(&release::example(), &linked, root.path()).unwrap();
        assert!(text.contains("\nbare 1.0.0, sibling 1.0.0\n"), "{text}");
    }

    #[test]
    fn a_package_without_a_text_gets_that_of_a_licence_it_names_or_fails_the_release() {
        let root = tempfile::tempdir().unwrap();
        let linked = [package(root.path(), "bare", &[("src/lib.rs", "")])];
        let failed = of_crates(&release::example(), &linked, root.path()).unwrap_err();
        let expected = "`bare 1.0.0` has no file with its licence, MIT OR Apache-2.0";
        assert_eq!(failed.to_string(), expected);
        fs::write(root.path().join("Apache-2.0.txt"), "standard\n").unwrap();
        let text = of_crates(&release::example(), &linked, root.path()).unwrap();
        assert!(text.ends_with("\nstandard\n"), "{text}");
    }
}
