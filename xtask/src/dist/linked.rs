//! What is linked into the program: crates, the C code inside of them, and what a static program takes from the machine that
//! builds it.
//!
//! `cargo tree` names the crates, because it knows which features this program alone turns on; `cargo metadata` and the lock file
//! say the rest. Macros and build scripts run on the building machine and are not linked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value as Json;

use harness::workspace::{cargo, output_of};

/// Something that is linked into the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) name: String,
    pub(super) version: String,
    /// An expression of SPDX.
    pub(super) licence: String,
    pub(super) repository: Option<String>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Crate(Crate),
    /// C code that a crate brings along.
    Inside {
        package: String,
    },
    /// Code of the toolchain or of the building machine.
    Toolchain {
        texts: Vec<PathBuf>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crate {
    /// Of this repository.
    pub(super) is_ours: bool,
    /// Where its sources are.
    pub(super) folder: PathBuf,
    /// The SHA-256 digest of its archive in the registry.
    pub(super) checksum: Option<String>,
    /// Names and versions of what it depends on, of what is linked.
    pub(super) needs: BTreeSet<(String, String)>,
}

/// The package with the program.
pub(super) const PROGRAM: &str = "superstep-archie";

/// Returns everything that is linked, crates first, in order.
pub(super) fn read(workspace: &Path, target: &str) -> anyhow::Result<Vec<Linked>> {
    let mut tree = cargo();
    tree.current_dir(workspace)
        .args(["tree", "--locked", "--package", PROGRAM])
        .args(["--edges", "normal,no-proc-macro", "--target", target])
        .args(["--prefix", "none", "--format", "{p}"]);
    let names = names(&output_of(&mut tree)?);
    let mut metadata = cargo();
    metadata
        .current_dir(workspace)
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", target]);
    let metadata: Json = serde_json::from_str(&output_of(&mut metadata)?)?;
    let lock = std::fs::read_to_string(workspace.join("Cargo.lock"))?;
    let mut linked = crates(&names, &metadata, &checksums(&lock)?)?;
    let inside: Vec<Linked> = linked
        .iter()
        .filter_map(|one| one.inside().transpose())
        .collect::<anyhow::Result<_>>()?;
    linked.extend(inside);
    linked.extend(toolchain()?);
    Ok(linked)
}

/// Names and versions in the output of `cargo tree`: a line is `serde v1.0.229`, with more behind it.
fn names(tree: &str) -> BTreeSet<(String, String)> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    };
    tree.lines().filter_map(name).collect()
}

/// Checksums of the lock file, by name and version.
fn checksums(lock: &str) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = toml::from_str(lock).context("Cargo.lock cannot be read")?;
    let packages = lock["package"]
        .as_array()
        .context("Cargo.lock has no packages")?;
    let checksum = |package: &toml::Value| {
        let text = |key| Some(package.get(key)?.as_str()?.to_owned());
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(checksum).collect())
}

fn crates(
    names: &BTreeSet<(String, String)>,
    metadata: &Json,
    checksums: &BTreeMap<(String, String), String>,
) -> anyhow::Result<Vec<Linked>> {
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let list = |json: &Json| json.as_array().cloned().unwrap_or_default();
    let by_id: BTreeMap<String, (String, String)> = list(&metadata["packages"])
        .iter()
        .map(|package| {
            let name = (text(&package["name"]), text(&package["version"]));
            (text(&package["id"]), name)
        })
        .collect();
    let needs: BTreeMap<String, BTreeSet<(String, String)>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let deps = list(&node["deps"]);
            let normal = deps.iter().filter(|dep| {
                let kinds = list(&dep["dep_kinds"]);
                kinds.iter().any(|kind| kind["kind"].is_null())
            });
            let needs = normal.filter_map(|dep| by_id.get(dep["pkg"].as_str()?));
            let needs = needs.filter(|name| names.contains(name)).cloned().collect();
            (text(&node["id"]), needs)
        })
        .collect();
    let mut crates = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let id = text(&package["id"]);
        let (name, version) = by_id[&id].clone();
        if !names.contains(&(name.clone(), version.clone())) {
            continue;
        }
        let Some(licence) = package["license"].as_str() else {
            bail!("`{name}` {version} names no licence");
        };
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let kind = Kind::Crate(Crate {
            is_ours: package["source"].is_null(),
            folder: manifest.parent().unwrap_or(&manifest).to_owned(),
            checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
            needs: needs.get(&id).cloned().unwrap_or_default(),
        });
        let linked = Linked {
            // An older spelling of `OR`.
            licence: licence.replace(" / ", " OR ").replace('/', " OR "),
            repository: package["repository"].as_str().map(str::to_owned),
            kind,
            name: name.clone(),
            version: version.clone(),
        };
        crates.insert((name, version), linked);
    }
    match names.iter().find(|name| !crates.contains_key(name)) {
        None => Ok(crates.into_values().collect()),
        Some((name, version)) => bail!("cargo metadata does not know `{name}` {version}"),
    }
}

impl Linked {
    /// Returns the C code that this crate brings along and that has a version of its own, by which advisories name it.
    fn inside(&self) -> anyhow::Result<Option<Self>> {
        let Kind::Crate(package) = &self.kind else {
            return Ok(None);
        };
        let Some((_, name, licence, header, define)) = INSIDE.iter().find(|row| row.0 == self.name)
        else {
            return Ok(None);
        };
        let header = package.folder.join(header);
        let text = std::fs::read_to_string(&header)
            .with_context(|| format!("{} cannot be read", header.display()))?;
        let version = defined(&text, define)
            .with_context(|| format!("{} does not define {define}", header.display()))?;
        Ok(Some(Self {
            name: (*name).to_owned(),
            version,
            licence: (*licence).to_owned(),
            repository: None,
            kind: Kind::Inside {
                package: self.name.clone(),
            },
        }))
    }
}

/// The crate, the name and the licence of the code, and where the version is.
const INSIDE: [(&str, &str, &str, &str, &str); 2] = [
    (
        "libsqlite3-sys",
        "sqlite",
        "blessing",
        "sqlite3/sqlite3.h",
        "SQLITE_VERSION",
    ),
    (
        "aws-lc-sys",
        "aws-lc",
        "ISC AND (Apache-2.0 OR ISC) AND OpenSSL",
        "aws-lc/include/openssl/base.h",
        "AWSLC_VERSION_NUMBER_STRING",
    ),
];

/// The text that a header defines.
fn defined(header: &str, name: &str) -> Option<String> {
    let mut lines = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    let value = lines.find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('"'))?;
    Some(value.split('"').next()?.to_owned())
}

/// The standard library of Rust, and the C library and the runtime of GCC of this machine.
fn toolchain() -> anyhow::Result<Vec<Linked>> {
    let line = |program: &str, args: &[&str]| {
        let text = output_of(Command::new(program).args(args))?;
        anyhow::Ok(text.trim().to_owned())
    };
    let rust = line("rustc", &["--version"])?;
    let rust = rust.split(' ').nth(1).unwrap_or_default().to_owned();
    let sysroot = PathBuf::from(line("rustc", &["--print", "sysroot"])?);
    let c = line("getconf", &["GNU_LIBC_VERSION"])?;
    let c = c.trim_start_matches("glibc ").to_owned();
    let gcc = line("cc", &["-dumpversion"])?;
    let debian = |package: &str| PathBuf::from(format!("/usr/share/doc/{package}/copyright"));
    let common = |name: &str| Path::new("/usr/share/common-licenses").join(name);
    let part = |name: &str, version: &str, licence: &str, texts: Vec<PathBuf>| Linked {
        name: name.to_owned(),
        version: version.to_owned(),
        licence: licence.to_owned(),
        repository: None,
        kind: Kind::Toolchain { texts },
    };
    Ok(vec![
        part(
            "rust-std",
            &rust,
            "MIT OR Apache-2.0",
            vec![sysroot.join("share/doc/rust/COPYRIGHT-library.html")],
        ),
        part(
            "glibc",
            &c,
            "LGPL-2.1-or-later",
            vec![debian("libc6-dev"), common("LGPL-2.1")],
        ),
        part(
            "libgcc",
            &gcc,
            "GPL-3.0-or-later WITH GCC-exception-3.1",
            vec![debian(&format!("libgcc-{gcc}-dev")), common("GPL-3")],
        ),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crates_of_the_tree_are_linked_and_others_are_not() {
        let tree = "superstep-archie v0.1.0 (/somewhere)\nserde v1.0.1\nserde v1.0.1 (*)\n";
        let package = |name: &str, version: &str, source: Json| {
            json!({
                "id": name, "name": name, "version": version, "source": source,
                "license": "MIT/Apache-2.0", "manifest_path": format!("/x/{name}/Cargo.toml"),
            })
        };
        let needs = json!([
            { "pkg": "serde", "dep_kinds": [{ "kind": null }] },
            { "pkg": "insta", "dep_kinds": [{ "kind": "dev" }] },
        ]);
        let metadata = json!({
            "packages": [
                package("serde", "1.0.1", "registry".into()),
                package("superstep-archie", "0.1.0", Json::Null),
                package("insta", "1.0.0", "registry".into()),
            ],
            "resolve": { "nodes": [{ "id": "superstep-archie", "deps": needs }] },
        });
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"abc\"\n";
        let linked = crates(&names(tree), &metadata, &checksums(lock).unwrap()).unwrap();
        let told = linked.iter().map(|one| {
            let Kind::Crate(package) = &one.kind else {
                panic!("{one:?}")
            };
            let needs: Vec<_> = package.needs.iter().map(|need| need.0.as_str()).collect();
            (one.name.as_str(), package.is_ours, needs.join(" "))
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                ("serde", false, String::new()),
                ("superstep-archie", true, "serde".to_owned()),
            ]
        );
        assert_eq!(linked[0].licence, "MIT OR Apache-2.0");
        let Kind::Crate(serde) = &linked[0].kind else {
            panic!("{:?}", linked[0])
        };
        assert_eq!(serde.checksum.as_deref(), Some("abc"));
    }

    #[test]
    fn a_crate_without_a_licence_and_one_that_cargo_does_not_know_are_errors() {
        let names = names("a v1.0.0");
        let mut metadata = json!({ "packages": [{ "id": "a", "name": "a", "version": "1.0.0" }] });
        let fails = |metadata: &Json| {
            let error = crates(&names, metadata, &BTreeMap::new()).unwrap_err();
            error.to_string()
        };
        assert_eq!(fails(&metadata), "`a` 1.0.0 names no licence");
        metadata["packages"][0]["version"] = "2.0.0".into();
        assert_eq!(fails(&metadata), "cargo metadata does not know `a` 1.0.0");
    }

    #[test]
    fn the_version_of_c_code_is_read_from_its_header() {
        let header = "#define SQLITE_VERSION_NUMBER 3\n#define SQLITE_VERSION        \"3.51.0\"\n";
        assert_eq!(defined(header, "SQLITE_VERSION").as_deref(), Some("3.51.0"));
        assert_eq!(defined(header, "SQLITE"), None);
    }
}
