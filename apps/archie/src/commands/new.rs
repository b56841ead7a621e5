//! `archie new`: creates a small project with an agent, whose program also contains the built-in agents, or with `--lib` one
//! that uses the library without Archie.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use archie_agent::{Exit, Terminal};

use crate::cli::args::NewArgs;

pub(super) fn run(args: &NewArgs, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let name = &args.name;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        bail!("`{name}` is not a name for an agent: small letters, digits and _, a letter first");
    }
    let folder = Path::new(name);
    if folder.exists() {
        bail!("{name} exists already; choose another name, or another folder to stand in");
    }
    let (crates, files) = match args.lib {
        true => (LIBRARY_CRATES, LIBRARY_FILES),
        false => (AGENT_CRATES, AGENT_FILES),
    };
    let crates = match &args.from {
        Some(checkout) => by_path(crates, checkout)?,
        None => by_version(crates),
    };
    for (file, text) in files {
        let path = folder.join(file.replace("NAME", name));
        let text = text
            .replace("{{name}}", name)
            .replace("{{crates}}", &crates);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        terminal.line(&format!("wrote {}", path.display()));
    }
    terminal.line("");
    terminal.line(&format!("cd {name}"));
    terminal.line("cargo test                                  # your graph, on a scripted model");
    if args.lib {
        terminal.line("cargo run                                   # a model answers, you decide");
        return Ok(Exit::Done);
    }
    terminal.line(&format!(
        "cargo run -- --model script:hello.json run {name}      # it asks, you answer"
    ));
    terminal
        .line("cargo run -- threads                        # your threads, and everybody else's");
    Ok(Exit::Done)
}

fn by_version(crates: &[(&str, &str)]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let lines = crates.iter().map(|(name, _)| match *name {
        ARCHIE => format!("archie = {{ package = \"{name}\", version = \"{version}\" }}"),
        _ => format!("{name} = \"{version}\""),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn by_path(crates: &[(&str, &str)], checkout: &Path) -> anyhow::Result<String> {
    let root = checkout
        .canonicalize()
        .with_context(|| format!("{} is not there", checkout.display()))?;
    let mut lines = Vec::new();
    for (name, path) in crates {
        let path = root.join(path);
        if !path.join("Cargo.toml").exists() {
            bail!("{} is not a checkout: it has no {name}", checkout.display());
        }
        let path = path.display().to_string();
        lines.push(match *name {
            ARCHIE => format!("archie = {{ package = \"{name}\", path = {path:?} }}"),
            _ => format!("{name} = {{ path = {path:?} }}"),
        });
    }
    Ok(lines.join("\n"))
}

/// Package of the library `archie`.
const ARCHIE: &str = "superstep-archie";

const AGENT_CRATES: &[(&str, &str)] = &[
    (ARCHIE, "apps/archie"),
    ("archie-agent", "agents/archie-agent"),
    ("superstep", "crates/superstep"),
    ("superstep-agent", "crates/superstep-agent"),
    ("superstep-llm", "crates/superstep-llm"),
];

const LIBRARY_CRATES: &[(&str, &str)] = &[
    ("superstep", "crates/superstep"),
    ("superstep-agent", "crates/superstep-agent"),
    ("superstep-llm", "crates/superstep-llm"),
    ("superstep-sqlite", "crates/superstep-sqlite"),
];

const AGENT_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("new/Cargo.toml.txt")),
    ("src/main.rs", include_str!("new/main.rs.txt")),
    ("src/lib.rs", include_str!("new/lib.rs.txt")),
    ("tests/NAME.rs", include_str!("new/test.rs.txt")),
    ("hello.json", include_str!("new/hello.json")),
    ("README.md", include_str!("new/README.md.txt")),
];

const LIBRARY_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("new/library/Cargo.toml.txt")),
    ("src/main.rs", include_str!("new/library/main.rs.txt")),
    ("hello.json", include_str!("new/hello.json")),
    ("README.md", include_str!("new/library/README.md.txt")),
];
