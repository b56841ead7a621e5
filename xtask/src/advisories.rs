//! `cargo xtask advisories --from PATH`: a snapshot of the RustSec database, for machines that cannot reach it.
//!
//! A snapshot holds what a check needs and nothing else: of each advisory against a package of our lock file its id,
//! package, date, kind and versions. Texts stay where they are; an id is enough to find them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, bail};
use toml::Table;

use harness::workspace::{cache, output_of, program, root};

/// The file that says of which day a snapshot is.
pub(crate) const DATE_FILE: &str = "DATE";

/// What was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AdvisoriesArgs {
    /// A clone of the database, with files or bare.
    pub(crate) from: PathBuf,
    /// Where the snapshot goes. Default: the cache folder.
    pub(crate) into: Option<PathBuf>,
}

/// What is known of one vulnerability.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Advisory {
    pub(crate) id: String,
    pub(crate) package: String,
    pub(crate) date: String,
    /// `unmaintained`, `unsound`, `notice`; none for a vulnerability.
    pub(crate) informational: Option<String>,
    /// When it was taken back.
    pub(crate) withdrawn: Option<String>,
    pub(crate) patched: Vec<String>,
    pub(crate) unaffected: Vec<String>,
}

pub(crate) fn run(args: &AdvisoriesArgs) -> anyhow::Result<()> {
    let into = match &args.into {
        Some(folder) => folder.clone(),
        None => cache()?.join("advisories"),
    };
    let git = |words: &[&str]| output_of(program("git").arg("-C").arg(&args.from).args(words));
    let date = git(&["log", "-1", "--format=%cs"]).with_context(|| {
        format!(
            "`{}` is not a clone of the advisory database",
            args.from.display()
        )
    })?;
    let packages = locked_packages(&fs::read_to_string(root().join("Cargo.lock"))?)?;
    let listing = git(&["ls-tree", "-r", "--name-only", "HEAD", "crates/"])?;
    let mut advisories = Vec::new();
    for path in listing.lines() {
        let package = path.split('/').nth(1).unwrap_or_default();
        if packages.contains(package) && path.ends_with(".md") {
            let text = git(&["show", &format!("HEAD:{path}")])?;
            let advisory = Advisory::read(&text);
            advisories.push(advisory.with_context(|| format!("`{path}` cannot be read"))?);
        }
    }
    if advisories.is_empty() {
        bail!("no advisory is about a package of Cargo.lock, which cannot be");
    }
    write(&into, &advisories, date.trim())?;
    eprintln!(
        "{} advisories about {} packages, as of {}, are in {}",
        advisories.len(),
        packages.len(),
        date.trim(),
        into.display()
    );
    Ok(())
}

/// Writes a snapshot in place of the one before.
pub(crate) fn write(folder: &Path, advisories: &[Advisory], date: &str) -> anyhow::Result<()> {
    let crates = folder.join("crates");
    if crates.exists() {
        fs::remove_dir_all(&crates)?;
    }
    for advisory in advisories {
        let folder = crates.join(&advisory.package);
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join(format!("{}.md", advisory.id)),
            advisory.to_string(),
        )?;
    }
    fs::write(folder.join(DATE_FILE), format!("{date}\n"))?;
    Ok(())
}

/// The names of all packages in a lock file.
fn locked_packages(lock: &str) -> anyhow::Result<BTreeSet<String>> {
    let lock: Table = toml::from_str(lock).context("Cargo.lock is not TOML")?;
    let packages = lock.get("package").and_then(|list| list.as_array());
    let names = packages
        .into_iter()
        .flatten()
        .filter_map(|package| package.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

impl Advisory {
    /// Reads the block of TOML at the beginning of an advisory.
    fn read(text: &str) -> anyhow::Result<Self> {
        let block = text.split("```toml").nth(1);
        let block = block.and_then(|rest| rest.split("```").next());
        let table: Table = toml::from_str(block.context("it has no block of TOML")?)?;
        let part = |name: &str| table.get(name).and_then(|part| part.as_table());
        let word = |field: &str| part("advisory")?.get(field)?.as_str();
        let versions = |field: &str| {
            let list = part("versions").and_then(|part| part.get(field)?.as_array());
            let words = list.into_iter().flatten().filter_map(|word| word.as_str());
            words.map(str::to_owned).collect()
        };
        Ok(Self {
            id: word("id").context("it has no id")?.to_owned(),
            package: word("package").context("it has no package")?.to_owned(),
            date: word("date").context("it has no date")?.to_owned(),
            informational: word("informational").map(str::to_owned),
            withdrawn: word("withdrawn").map(str::to_owned),
            patched: versions("patched"),
            unaffected: versions("unaffected"),
        })
    }
}

/// As cargo-deny reads it. The id takes the place of a title.
impl fmt::Display for Advisory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |words: &[String]| {
            let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
            words.join(", ")
        };
        writeln!(f, "```toml\n[advisory]")?;
        writeln!(f, "id = \"{}\"", self.id)?;
        writeln!(f, "package = \"{}\"", self.package)?;
        writeln!(f, "date = \"{}\"", self.date)?;
        if let Some(kind) = &self.informational {
            writeln!(f, "informational = \"{kind}\"")?;
        }
        if let Some(day) = &self.withdrawn {
            writeln!(f, "withdrawn = \"{day}\"")?;
        }
        writeln!(f, "\n[versions]")?;
        writeln!(f, "patched = [{}]", quoted(&self.patched))?;
        writeln!(f, "unaffected = [{}]", quoted(&self.unaffected))?;
        writeln!(f, "```\n\n# {}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advisory_is_kept_without_its_texts() {
        let text = "```toml\n[advisory]\nid = \"RUSTSEC-2099-0001\"\npackage = \"a\"\ndate = \"2099-01-02\"\nurl = \"x\"\n\
            informational = \"unmaintained\"\n[affected]\nos = [\"linux\"]\n[versions]\npatched = [\">= 1.2\", \"^0.9\"]\n```\n\n# Title\n\nText.\n";
        let advisory = Advisory::read(text).unwrap();
        assert_eq!(advisory.patched, [">= 1.2", "^0.9"]);
        assert!(advisory.unaffected.is_empty());
        let written = advisory.to_string();
        assert!(!written.contains("Text") && !written.contains("Title"));
        assert_eq!(Advisory::read(&written).unwrap(), advisory);
        assert!(Advisory::read("# Title").is_err());
    }

    #[test]
    fn packages_are_those_of_the_lock_file() {
        let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
        let packages = locked_packages(&lock).unwrap();
        assert!(packages.contains("serde_json") && packages.contains("superstep-archie"));
    }
}
