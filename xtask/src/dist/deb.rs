//! A package for Debian and what is like it: an `ar` archive of a version, a control file and a tree.
//!
//! It has no dependencies, because the program is static, and no maintainer scripts: it starts no service.

use super::contents::Contents;
use super::release::Release;
use super::tree::{Tree, gzip};

/// Returns the package.
pub(super) fn package(release: &Release, contents: &Contents) -> anyhow::Result<Vec<u8>> {
    let mut data = Tree::default();
    data.file("usr/bin/archie", 0o755, contents.program.clone());
    for (path, text) in &contents.completions {
        let (_, file) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some((_, folder, name)) = COMPLETIONS.iter().find(|(name, ..)| *name == file) {
            data.file(&format!("{folder}/{name}"), 0o644, text.as_str());
        }
    }
    for (name, text) in &contents.manuals {
        let path = format!("usr/share/man/man1/{name}.gz");
        data.file(&path, 0o644, gzip(text.as_bytes())?);
    }
    let changelog = gzip(contents.changelog.as_bytes())?;
    data.file(&format!("{DOC}/changelog.gz"), 0o644, changelog);
    data.file(&format!("{DOC}/README.md"), 0o644, contents.readme.as_str());
    data.file(&format!("{DOC}/copyright"), 0o644, contents.copyright());
    for (name, text) in &contents.third_party {
        let path = format!("{DOC}/licenses/{name}.gz");
        data.file(&path, 0o644, gzip(text.as_bytes())?);
    }
    let mut control = Tree::default();
    let kilobytes = data.bytes().div_ceil(1024);
    control.file("control", 0o644, control_file(release, kilobytes));
    let control = gzip(&control.to_tar("./", release.date)?)?;
    let data = gzip(&data.to_tar("./", release.date)?)?;
    let members: [(&str, &[u8]); 3] = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", &control),
        ("data.tar.gz", &data),
    ];
    Ok(ar(&members, release.date))
}

fn control_file(release: &Release, kilobytes: usize) -> String {
    let Release {
        version, platform, ..
    } = release;
    let architecture = platform.debian;
    format!(
        "Package: archie
Version: {version}
Architecture: {architecture}
Maintainer: The Superstep contributors <>
Installed-Size: {kilobytes}
Section: utils
Priority: optional
Recommends: ca-certificates
Suggests: bubblewrap, python3-venv
Description: durable agents that survive kill -9 and show their cost and evidence
 Archie has five agents that ask before they act, a server for agents over HTTP,
 and a worker for Restate. Every step is stored before the next one starts.
 .
 The agent sheet needs bubblewrap and a Python with pandas. The program is static
 and needs nothing else; a store on another machine or a model over HTTPS needs
 root certificates.
"
    )
}

/// The common form of an `ar` archive: headers of 60 bytes, and contents that begin at even places.
fn ar(members: &[(&str, &[u8])], date: u64) -> Vec<u8> {
    let mut ar = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        let header = format!("{name:<16}{date:<12}0     0     100644  {size:<10}`\n");
        ar.extend(header.bytes());
        ar.extend_from_slice(content);
        if size % 2 == 1 {
            ar.push(b'\n');
        }
    }
    ar
}

const DOC: &str = "usr/share/doc/archie";

/// The completion scripts that Debian's shells find by themselves: our name, and where they look.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    (
        "archie.bash",
        "usr/share/bash-completion/completions",
        "archie",
    ),
    ("_archie", "usr/share/zsh/vendor-completions", "_archie"),
    (
        "archie.fish",
        "usr/share/fish/vendor_completions.d",
        "archie.fish",
    ),
];

#[cfg(test)]
mod tests {
    use std::process::Command;

    use harness::workspace::output_of;

    use super::*;
    use crate::dist::contents;
    use crate::dist::release;

    #[test]
    fn an_ar_archive_has_headers_of_sixty_bytes_and_members_at_even_places() {
        let archive = ar(&[("a", b"odd"), ("b", b"even")], 7);
        let text = String::from_utf8(archive).unwrap();
        assert_eq!(
            text,
            "!<arch>\n\
             a               7           0     0     100644  3         `\nodd\n\
             b               7           0     0     100644  4         `\neven"
        );
    }

    /// `ar` is another program's idea of the format.
    #[test]
    fn ar_reads_the_members_of_a_package() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archie.deb");
        let package = package(&release::example(), &contents::example()).unwrap();
        std::fs::write(&path, package).unwrap();
        let members = output_of(Command::new("ar").arg("t").arg(&path)).unwrap();
        assert_eq!(members, "debian-binary\ncontrol.tar.gz\ndata.tar.gz\n");
        let mut print = Command::new("ar");
        let version = output_of(print.arg("p").arg(&path).arg("debian-binary")).unwrap();
        assert_eq!(version, "2.0\n");
    }

    #[test]
    fn a_package_says_what_it_is_and_has_each_file_where_debian_looks_for_it() {
        if !std::path::Path::new("/usr/bin/dpkg-deb").exists() {
            eprintln!("SKIPPED, dpkg-deb is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archie.deb");
        let package = package(&release::example(), &contents::example()).unwrap();
        std::fs::write(&path, package).unwrap();
        let mut field = Command::new("dpkg-deb");
        field.arg("--field").arg(&path);
        field.args(["Package", "Version", "Architecture", "Installed-Size"]);
        let fields = output_of(&mut field).unwrap();
        assert_eq!(
            fields,
            "Package: archie\nVersion: 1.2.3\nArchitecture: amd64\nInstalled-Size: 1\n"
        );
        let listing = output_of(Command::new("dpkg-deb").arg("--contents").arg(&path)).unwrap();
        for (mode, path) in [
            ("-rwxr-xr-x root/root", "./usr/bin/archie"),
            ("-rw-r--r-- root/root", "./usr/share/doc/archie/copyright"),
            (
                "-rw-r--r-- root/root",
                "./usr/share/man/man1/archie-serve.1.gz",
            ),
            (
                "-rw-r--r-- root/root",
                "./usr/share/bash-completion/completions/archie",
            ),
        ] {
            let is_listed = |line: &str| line.starts_with(mode) && line.ends_with(path);
            assert!(listing.lines().any(is_listed), "{path} in:\n{listing}");
        }
    }
}
